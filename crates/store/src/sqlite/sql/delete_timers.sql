delete from everbell_timers
where (job_id, org_id) in (select unhex(value ->> 0), value ->> 1 from json_each(?1))
