insert into everbell_timers (job_id, org_id, target, next_run_at, last_slot_at, rescheduled_from, last_local_date)
select unhex(value ->> 0), '', value ->> 1, value ->> 2, value ->> 3, null, null from json_each(?1)
