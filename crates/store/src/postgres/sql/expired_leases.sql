-- The job is the version that the run is of, whose policies decide about it: `job_id` of active_runs is the newest one.
-- Runs of instances whose lease goes on are left out by a list, because the own leases of most of them have ended. So are runs
-- that were handed over: their lease is that of their remote side.
select run_id, (select r.job_id from everbell.runs r where r.id = run_id) as job_id, attempt, earlier from everbell.active_runs a
where status = 'running' and lease_until < $1 and runner_id <> '00000000-0000-0000-0000-000000000000'
  and runner_id <> all (array(select id from everbell.instances where lease_until >= $1))
order by greatest(lease_until, (select i.lease_until from everbell.instances i where i.id = a.runner_id)), run_id limit $2
