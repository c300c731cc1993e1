delete from everbell_run_groups where job_key = ?1
