select a.run_id, a.status from everbell_active_runs a join everbell_jobs j on j.id = a.job_id where j.job_key = ?1
order by a.run_id
