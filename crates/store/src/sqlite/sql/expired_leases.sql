-- The job is the version that the run is of, whose policies decide about it: `job_id` of active_runs is the newest one. Runs
-- that were handed over are left out: their lease is that of their remote side.
select run_id, (select r.job_id from everbell_runs r where r.id = run_id) as job_id, attempt, earlier from everbell_active_runs a
where status = 'running' and lease_until < ?1 and runner_id <> zeroblob(16)
  and runner_id not in (select id from everbell_instances where lease_until >= ?1)
order by max(lease_until, coalesce((select i.lease_until from everbell_instances i where i.id = a.runner_id), lease_until)), run_id
limit ?2
