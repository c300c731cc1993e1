delete from everbell_inbox where id in (select id from everbell_inbox where answered_at < ?1 order by answered_at limit ?2)
