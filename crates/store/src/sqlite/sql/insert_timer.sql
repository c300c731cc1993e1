insert into timers (job_id, org_id, target, next_run_at, last_slot_at, rescheduled_from, last_local_date)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
