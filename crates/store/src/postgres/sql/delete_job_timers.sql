delete from everbell.timers where job_id = any($1)
