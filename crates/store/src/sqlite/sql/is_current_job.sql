select scope from everbell_jobs where job_key = ?1 and status <> 'retired'
