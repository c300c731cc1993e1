select id from everbell.jobs where job_key = $1 and version = $2
