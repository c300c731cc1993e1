select * from job_rows where id = any($1)
