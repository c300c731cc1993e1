-- Materialised, because a limit below a join or an `in (...)` may lock more rows than it returns.
with due as materialized (
  select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
  from timers
  where next_run_at <= $1 and target = any($2)
  order by next_run_at
  limit $3
  for update skip locked
)
select * from due order by next_run_at, job_id, org_id
