-- The partial index has only jobs with failures, which are few.
update everbell_jobs indexed by everbell_jobs_failing set consecutive_failures = 0
where id in (select unhex(value) from json_each(?1)) and consecutive_failures > 0
