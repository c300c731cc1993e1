select target, status, count(*) as jobs from everbell.jobs where status <> 'retired' group by target, status
