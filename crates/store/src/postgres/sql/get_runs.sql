select * from everbell.run_rows where id = any($1)
