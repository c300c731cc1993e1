delete from everbell_timers where job_id in (select unhex(value) from json_each(?1))
