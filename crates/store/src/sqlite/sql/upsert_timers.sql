-- The mark never goes back, whatever a decision says.
insert into everbell_timers (job_id, org_id, target, next_run_at, last_slot_at, rescheduled_from, last_local_date, error)
select unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
from jsonb_each(?1)
where true
on conflict (job_id, org_id) do update
set target = excluded.target, next_run_at = excluded.next_run_at,
    last_slot_at = max(everbell_timers.last_slot_at, excluded.last_slot_at), rescheduled_from = excluded.rescheduled_from,
    last_local_date = excluded.last_local_date, error = excluded.error
