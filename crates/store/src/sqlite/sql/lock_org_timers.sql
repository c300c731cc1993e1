select t.job_id, t.org_id, t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date, t.error
from (select unhex(value) as job_id from json_each(?1)) j
cross join (select value as org_id from json_each(?2)) o
cross join everbell_timers t on t.job_id = j.job_id and t.org_id = o.org_id
