delete from everbell.freezes where ends_at < $1
