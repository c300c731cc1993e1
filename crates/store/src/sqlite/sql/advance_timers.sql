-- Neither mark ever goes back, whatever a plan says.
update everbell_timers
set next_run_at = g.next_run_at, last_slot_at = max(everbell_timers.last_slot_at, g.last_slot_at),
    rescheduled_from = g.rescheduled_from, last_local_date = g.last_local_date,
    last_run_at = coalesce(max(everbell_timers.last_run_at, g.last_run_at), g.last_run_at, everbell_timers.last_run_at),
    last_run_id = iif((g.last_run_at, g.last_run_id) < (everbell_timers.last_run_at, everbell_timers.last_run_id), everbell_timers.last_run_id,
                      coalesce(g.last_run_id, everbell_timers.last_run_id))
from (
  select unhex(value ->> 0) as job_id, value ->> 1 as org_id, value ->> 2 as next_run_at, value ->> 3 as last_slot_at,
         value ->> 4 as rescheduled_from, value ->> 5 as last_local_date, value ->> 6 as last_run_at,
         unhex(value ->> 7) as last_run_id
  from jsonb_each(?1)
) g
where everbell_timers.job_id = g.job_id and everbell_timers.org_id = g.org_id
