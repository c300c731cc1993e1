select run_id from everbell_active_runs where job_id = ?1 and status = 'pending' order by run_id
