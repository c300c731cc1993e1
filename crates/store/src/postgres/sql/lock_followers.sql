-- In one order, so that two who end runs do not wait for each other.
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
from everbell.timers where job_id = any($1) and org_id = '' order by job_id for update
