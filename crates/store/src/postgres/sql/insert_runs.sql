with given as (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::bigint[], $6::timestamptz[], $7::text[],
                       $8::text[], $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::text[],
                       $15::boolean[], $16::integer[])
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
select id from new
