delete from everbell.sweeps where job_id = any($1)
