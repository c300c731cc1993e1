-- A column that has the same value everywhere comes as an array of one, which `unnest` fills up with nulls. Few runs are
-- held, may run beside others or have a priority: those are named. Runs start at once for instance $22: all of them, or
-- those that are named. Told are the runs that are new, or nothing if all of them are.
with given as (
  select g.id, g.job_id, coalesce(g.org_id, ($3::text[])[1]) as org_id, coalesce(g.at, ($4::timestamptz[])[1]) as at,
         coalesce(g.nonce, ($5::bigint[])[1]) as nonce, coalesce(g.scheduled_at, ($6::timestamptz[])[1]) as scheduled_at,
         coalesce(g.trigger, ($7::text[])[1]) as trigger, coalesce(g.target, ($8::text[])[1]) as target, g.payload,
         g.skip_reason, g.skip_detail, coalesce(g.catch_up, ($12::boolean[])[1]) as catch_up,
         coalesce(g.folded, ($13::bigint[])[1]) as folded, g.local_date, g.trace_context
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::bigint[], $6::timestamptz[], $7::text[],
              $8::text[], $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::text[], $21::text[])
    as g (id, job_id, org_id, at, nonce, scheduled_at, trigger, target, payload, skip_reason, skip_detail, catch_up, folded,
          local_date, trace_context)
), new as (
  insert into everbell.runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, payload, skip_reason,
                    skip_detail, catch_up, folded, local_date, trace_context)
  select id, job_id, org_id, at, nonce, scheduled_at, $18, trigger, target, payload, skip_reason, skip_detail, catch_up,
         folded, local_date, trace_context
  from given
  on conflict do nothing
  returning id, job_id, org_id, target, scheduled_at, skip_reason, trigger
), active as (
  insert into everbell.active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at, priority,
                           runner_id, claimed_at, started_at, lease_until, backfill)
  select id, job_id, org_id, target, case when starts then 'running' else 'pending' end, id = any($15::uuid[]), coalesce(
    (select m.most from unnest($16::uuid[], $17::integer[]) as m (run_id, most) where m.run_id = new.id), 1
  ), starts::integer, scheduled_at, coalesce(
    (select p.priority from unnest($19::uuid[], $20::integer[]) as p (run_id, priority) where p.run_id = new.id), 0
  ), case when starts then $22::uuid end, case when starts then $25::timestamptz end,
  case when starts then $25::timestamptz end, case when starts then $26::timestamptz end, trigger like 'backfill:%'
  from (select *, $23::boolean or id = any($24::uuid[]) as starts from new where skip_reason is null offset 0) new
)
select case when (select count(*) from new) < cardinality($1) then array(select id from new) end as new
