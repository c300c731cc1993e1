delete from everbell_run_counters where job_key = ?1 and job_key <> ''
