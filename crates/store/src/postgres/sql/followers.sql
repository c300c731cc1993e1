-- The current jobs that start after the jobs of these runs. Those that start after several have an empty `after_key`.
select a.run_id, r.trigger, c.id as job_id, c.status = 'paused' as is_paused, p.job_key as parent_key, r.org_id,
       c.job_key, c.timezone, case when c.after_key = '' then c.cron_expression end as fan_in
from everbell.active_runs a
join everbell.runs r on r.id = any(array[a.run_id])
join everbell.jobs p on p.id = any(array[r.job_id])
-- `coalesce`, so that it is read by the index of chains, never as a whole by the one of current jobs.
join everbell.jobs c on c.after_key = any(array[p.job_key, '']) and c.after_key is not null
  and coalesce(c.status, '') <> 'retired'
  and (c.after_key <> '' or strpos(c.cron_expression, chr(10) || p.job_key || chr(10)) > 0)
where a.run_id = any($1) and exists (select from everbell.jobs where after_key is not null)
order by c.id, a.run_id
