select id from everbell.sweeps where job_key = $1 for update
