-- The current jobs that start after the jobs of these runs.
select a.run_id, r.trigger, c.id as job_id, c.status = 'paused' as is_paused
from everbell.active_runs a
join everbell.runs r on r.id = any(array[a.run_id])
join everbell.jobs p on p.id = any(array[r.job_id])
-- `coalesce`, so that it is read by the index of chains, never as a whole by the one of current jobs.
join everbell.jobs c on c.after_key = any(array[p.job_key]) and c.after_key is not null and coalesce(c.status, '') <> 'retired'
where a.run_id = any($1) and exists (select from everbell.jobs where after_key is not null)
order by c.id, a.run_id
