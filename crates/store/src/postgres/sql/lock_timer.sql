-- Before the job, as everywhere: timers, then active_runs, then jobs.
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
from everbell.timers where job_id = $1 and org_id = $2 for update
