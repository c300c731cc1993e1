-- There is no other writer, so nothing needs a lock.
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
from everbell_timers where job_id in (select unhex(value) from json_each(?1)) and org_id = '' order by job_id
