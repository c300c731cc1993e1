delete from everbell.gaps where id = any($1)
