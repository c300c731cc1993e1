select exists (select 1 from everbell_jobs where job_key = ?1 and status <> 'retired')
