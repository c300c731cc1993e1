select * from everbell_job_rows where id in (select unhex(value) from json_each(?1))
