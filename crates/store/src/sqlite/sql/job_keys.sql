select id, job_key from everbell_jobs where id in (select unhex(value) from json_each(?1)) order by id limit 1000
