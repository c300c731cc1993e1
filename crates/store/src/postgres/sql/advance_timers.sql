-- Neither mark ever goes back, whatever a plan says.
update everbell.timers t
set next_run_at = g.next_run_at, last_slot_at = greatest(t.last_slot_at, g.last_slot_at), rescheduled_from = g.rescheduled_from,
    last_local_date = g.last_local_date, last_run_at = greatest(t.last_run_at, g.last_run_at),
    last_run_id = case when (g.last_run_at, g.last_run_id) < (t.last_run_at, t.last_run_id) then t.last_run_id
                  else coalesce(g.last_run_id, t.last_run_id) end
from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::timestamptz[],
            $8::uuid[])
  as g (job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date, last_run_at, last_run_id)
where t.job_id = any(array[g.job_id]) and t.org_id = g.org_id
