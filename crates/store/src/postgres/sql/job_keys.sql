select id, job_key from everbell.jobs where id = any($1) order by id limit 1000
