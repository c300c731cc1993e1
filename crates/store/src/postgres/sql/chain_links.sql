select job_key, cron_expression from everbell.jobs
where after_key is not null and status <> 'retired' order by job_key limit $1
