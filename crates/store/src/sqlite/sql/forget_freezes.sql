delete from everbell_freezes where ends_at < ?1
