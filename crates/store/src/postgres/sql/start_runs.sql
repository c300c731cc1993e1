-- One look for each target, so that a target with no room hides none of the others: for runs of a high priority, for those
-- without one, and for those of a low one, as far as there is room left. A held run starts only as the first held one of
-- its job and org, so two claimers cannot start two of them. Runs of backfills wait for each other, not for the schedule's, and are
-- passed over where they have their share already.
with wanted as materialized (
  select * from unnest($1::text[], $2::bigint[], $7::timestamptz[], $8::boolean[]) as wanted (target, room, since, backfills)
), urgent as materialized (
  select one.place, wanted.target
  from wanted
  cross join lateral (
    select a.ctid as place, a.priority, a.available_at, a.run_id
    from everbell.active_runs a
    where a.target = wanted.target and a.priority > 0 and a.status = 'pending' and a.available_at <= $4 and not a.paused
      and (not a.held or (
        not exists (select from everbell.active_runs b where b.job_id = a.job_id and b.org_id = a.org_id and b.backfill = a.backfill
                          and b.held and (b.run_id < a.run_id) is true)
        and (select count(*) from everbell.active_runs b where b.job_id = a.job_id and b.org_id = a.org_id and b.backfill = a.backfill
               and not b.held) < a.max_concurrent
      ))
      and (wanted.backfills or not a.backfill)
    order by a.priority desc, a.available_at, a.run_id
    limit least(wanted.room, $3)
    for update of a skip locked
  ) one
  order by one.priority desc, one.available_at, one.run_id
  limit $3
), usual as materialized (
  select one.place, wanted.target
  from wanted
  cross join lateral (
    select a.ctid as place, a.available_at, a.run_id
    from everbell.active_runs a
    where a.target = wanted.target and a.status = 'pending' and a.available_at <= $4 and not a.paused and a.priority = 0
      and a.available_at >= wanted.since -- see floors.rs
      and (not a.held or (
        not exists (select from everbell.active_runs b where b.job_id = a.job_id and b.org_id = a.org_id and b.backfill = a.backfill
                          and b.held and (b.run_id < a.run_id) is true)
        and (select count(*) from everbell.active_runs b where b.job_id = a.job_id and b.org_id = a.org_id and b.backfill = a.backfill
               and not b.held) < a.max_concurrent
      ))
      and (wanted.backfills or not a.backfill)
    order by a.available_at, a.run_id
    limit least(wanted.room - (select count(*) from urgent t where t.target = wanted.target), $3 - (select count(*) from urgent))
    for update of a skip locked
  ) one
  order by one.available_at, one.run_id
  limit $3 - (select count(*) from urgent)
), patient as materialized (
  select one.place, wanted.target
  from wanted
  cross join lateral (
    select a.ctid as place, a.priority, a.available_at, a.run_id
    from everbell.active_runs a
    where a.target = wanted.target and a.priority < 0 and a.status = 'pending' and a.available_at <= $4 and not a.paused
      and (not a.held or (
        not exists (select from everbell.active_runs b where b.job_id = a.job_id and b.org_id = a.org_id and b.backfill = a.backfill
                          and b.held and (b.run_id < a.run_id) is true)
        and (select count(*) from everbell.active_runs b where b.job_id = a.job_id and b.org_id = a.org_id and b.backfill = a.backfill
               and not b.held) < a.max_concurrent
      ))
      and (wanted.backfills or not a.backfill)
    order by a.priority desc, a.available_at, a.run_id
    limit least(wanted.room - (select count(*) from urgent t where t.target = wanted.target) - (select count(*) from usual t where t.target = wanted.target), $3 - (select count(*) from urgent) - (select count(*) from usual))
    for update of a skip locked
  ) one
  order by one.priority desc, one.available_at, one.run_id
  limit $3 - (select count(*) from urgent) - (select count(*) from usual)
), picked as (
  select place from urgent union all select place from usual union all select place from patient
), started as (
  update everbell.active_runs a
  set status = 'running', held = false, attempt = a.attempt + 1, runner_id = $5, claimed_at = $4, started_at = $4,
      lease_until = $6, failure_code = null, failure_message = null, failure_details = null, output = null
  -- By their place, which is theirs while they are locked.
  where a.ctid = any(array(select place from picked))
  returning a.run_id, a.attempt, a.cancel_by, a.earlier
)
select r.id, r.job_id, r.org_id, r.local_date, r.target, r.payload, r.trigger, r.nonce = 0 as by_slot, r.at, r.scheduled_at,
       r.created_at, r.catch_up, r.folded, s.attempt, s.cancel_by, s.earlier, r.trace_context
from started s
-- By its key for each, whatever the planner believes of the size of the table.
cross join lateral (select * from everbell.runs where id = s.run_id offset 0) r
