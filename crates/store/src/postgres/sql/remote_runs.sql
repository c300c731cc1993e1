-- The job is the version that the run is of, whose policies decide about it: `job_id` of active_runs is the newest one.
select run_id, (select r.job_id from everbell.runs r where r.id = run_id) as job_id, attempt, earlier, lease_until, remote_lease,
       remote_deadline, started_at, cancel_by
from everbell.active_runs a
where remote_lease is not null and status = 'running' and runner_id = $1 and least(lease_until, remote_deadline) < $2
order by least(lease_until, remote_deadline), run_id limit $3
