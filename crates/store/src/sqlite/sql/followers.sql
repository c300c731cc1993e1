-- The current jobs that start after the jobs of these runs.
select a.run_id, r.trigger, c.id as job_id, c.status = 'paused' as is_paused
from everbell_active_runs a
cross join everbell_runs r on r.id = a.run_id
cross join everbell_jobs p on p.id = r.job_id
cross join everbell_jobs c on c.after_key = p.job_key and c.status <> 'retired'
where exists (select 1 from everbell_jobs where after_key is not null)
  and a.run_id in (select unhex(value) from json_each(?1))
order by c.id, a.run_id
