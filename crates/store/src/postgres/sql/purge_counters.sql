delete from everbell.run_counters where job_key = $1 and job_key <> ''
