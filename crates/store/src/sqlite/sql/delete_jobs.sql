delete from everbell_jobs where id in (select unhex(value) from json_each(?1))
