-- A job with a timer for each org is seen through the first of them.
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
from timers where job_id = ?1 order by org_id limit 1
