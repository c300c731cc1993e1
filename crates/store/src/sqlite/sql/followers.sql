-- The current jobs that start after the jobs of these runs. Those that start after several have an empty `after_key`.
select a.run_id, r.trigger, c.id as job_id, c.status = 'paused' as is_paused, p.job_key as parent_key, r.org_id,
       c.job_key, c.timezone, case when c.after_key = '' then c.cron_expression end as fan_in
from everbell_active_runs a
cross join everbell_runs r on r.id = a.run_id
cross join everbell_jobs p on p.id = r.job_id
cross join everbell_jobs c on c.after_key in (p.job_key, '') and c.status <> 'retired'
  and (c.after_key <> '' or instr(c.cron_expression, char(10) || p.job_key || char(10)) > 0)
where exists (select 1 from everbell_jobs where after_key is not null)
  and a.run_id in (select unhex(value) from json_each(?1))
order by c.id, a.run_id
