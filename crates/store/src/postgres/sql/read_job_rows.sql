select * from everbell.job_rows where id = any($1)
