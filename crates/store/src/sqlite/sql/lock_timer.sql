select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
from everbell_timers where job_id = ?1 and org_id = ?2
