-- Materialised, because a limit below a join or an `in (...)` may lock more rows than it returns. The active runs are read
-- by a statement of their own: one that sees what was committed before the timers were locked, not before they were looked
-- for. Jobs with a priority are found in an index that has only these; `policies` names what differs from the usual.
with ranked as materialized (
  select exists (
    select from everbell.jobs
    where target = any($2) and (status <> 'retired' and position('"priority":' in policies) > 0) is true
  ) as any_is
), due as materialized (
  select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
  from everbell.timers
  where next_run_at <= $1 and next_run_at >= $4 and target = any($2) -- see floors.rs
  order by next_run_at
  limit case when (select any_is from ranked) then $5::bigint else $3::bigint end
  for update skip locked
)
select due.job_id, due.org_id, due.next_run_at, due.last_slot_at, due.rescheduled_from, due.last_local_date, coalesce(
  (select next_run_at
   from (select next_run_at, target from everbell.timers where next_run_at > $1 order by next_run_at limit 1000) soon
   where target = any($2) order by next_run_at limit 1),
  (select next_run_at from everbell.timers where next_run_at > $1 order by next_run_at offset 999 limit 1)
) as next_due_at, -- as in next_due
(select any_is from ranked) as by_priority
from due
