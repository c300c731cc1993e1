select job_key from everbell.jobs where target = $1 and status <> 'retired' order by job_key collate "C" limit $2
