select id from everbell_jobs where job_key = ?1 and version = ?2
