delete from everbell.jobs where id = any($1)
