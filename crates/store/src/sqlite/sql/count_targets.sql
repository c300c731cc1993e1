select target, status, count(*) as jobs from everbell_jobs where status <> 'retired' group by target, status
