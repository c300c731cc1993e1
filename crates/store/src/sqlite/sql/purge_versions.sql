select id from everbell_jobs where job_key = ?1 order by version
