-- A column that has the same value everywhere comes as an array of one, which `unnest` fills up with nulls. Told are only
-- the runs that are not new: usually none.
with given as (
  select g.id, g.job_id, coalesce(g.org_id, ($3::text[])[1]) as org_id, coalesce(g.at, ($4::timestamptz[])[1]) as at,
         coalesce(g.nonce, ($5::bigint[])[1]) as nonce, coalesce(g.scheduled_at, ($6::timestamptz[])[1]) as scheduled_at,
         coalesce(g.trigger, ($7::text[])[1]) as trigger, coalesce(g.target, ($8::text[])[1]) as target, g.payload,
         g.skip_reason, g.skip_detail, coalesce(g.catch_up, ($12::boolean[])[1]) as catch_up,
         coalesce(g.folded, ($13::bigint[])[1]) as folded, g.local_date, coalesce(g.held, ($15::boolean[])[1]) as held,
         coalesce(g.max_concurrent, ($16::integer[])[1]) as max_concurrent
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::bigint[], $6::timestamptz[], $7::text[],
              $8::text[], $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::text[], $15::boolean[],
              $16::integer[])
    as g (id, job_id, org_id, at, nonce, scheduled_at, trigger, target, payload, skip_reason, skip_detail, catch_up, folded,
          local_date, held, max_concurrent)
), new as (
  insert into runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, payload, skip_reason,
                    skip_detail, catch_up, folded, local_date)
  select id, job_id, org_id, at, nonce, scheduled_at, $17, trigger, target, payload, skip_reason, skip_detail, catch_up,
         folded, local_date
  from given
  on conflict do nothing
  returning id
), active as (
  insert into active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at)
  select g.id, g.job_id, g.org_id, g.target, 'pending', g.held, g.max_concurrent, 0, g.scheduled_at
  from given g join new on new.id = g.id
  where g.skip_reason is null
)
select id from unnest($1::uuid[]) as g (id) where not exists (select from new where new.id = g.id)
