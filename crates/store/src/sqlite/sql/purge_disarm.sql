update everbell_timers set next_run_at = null
where job_id in (select unhex(value) from json_each(?1)) and next_run_at is not null
