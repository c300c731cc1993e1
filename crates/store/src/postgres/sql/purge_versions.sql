select id from everbell.jobs where job_key = $1 order by version for update
