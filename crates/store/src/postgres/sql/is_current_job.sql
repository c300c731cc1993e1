select scope from everbell.jobs where job_key = $1 and status <> 'retired'
