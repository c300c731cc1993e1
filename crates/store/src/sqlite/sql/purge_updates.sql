delete from everbell_sweeps where job_id in (select unhex(value) from json_each(?1))
