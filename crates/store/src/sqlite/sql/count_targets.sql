select target, status, count(*) as jobs from jobs where status <> 'retired' group by target, status
