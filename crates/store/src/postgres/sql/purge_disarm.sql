update everbell.timers set next_run_at = null where job_id = any($1) and next_run_at is not null
