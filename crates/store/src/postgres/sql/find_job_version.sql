select id from jobs where job_key = $1 and version = $2
