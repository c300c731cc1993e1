select exists (select from everbell.jobs where job_key = $1 and status <> 'retired')
