select job_key from everbell_jobs where target = ?1 and status <> 'retired' order by job_key limit ?2
