-- One look for each target, so that a target with no room hides none of the others: for runs of a high priority, for those
-- without one, and for those of a low one, as far as there is room left. Runs that are held or paused are in none of the indexes
-- of these looks, so none walks over them. A held run starts only as the first held one of its job and org, so two claimers cannot
-- start two of them. Runs of backfills wait for each other, not for the schedule's, and are passed over where they have their
-- share already.
with recursive wanted as materialized (
  select * from unnest($1::text[], $2::bigint[], $7::timestamptz[], $8::boolean[]) as wanted (target, room, since, backfills)
), urgent as materialized (
  select one.*, wanted.target
  from wanted
  cross join lateral (
    select a.ctid as place, a.priority, a.available_at, a.run_id
    from everbell.active_runs a
    where a.target = wanted.target and a.priority > 0 and not a.held and not a.paused and a.status = 'pending'
      and a.available_at <= $4
      and (wanted.backfills or not a.backfill)
    order by a.priority desc, a.available_at, a.run_id
    limit least(wanted.room, $3)
    for update of a skip locked
  ) one
  order by one.priority desc, one.available_at, one.run_id
  limit $3
), usual as materialized (
  select one.*, wanted.target
  from wanted
  cross join lateral (
    select a.ctid as place, 0 as priority, a.available_at, a.run_id
    from everbell.active_runs a
    where a.target = wanted.target and a.priority = 0 and not a.held and not a.paused and a.status = 'pending'
      and a.available_at <= $4
      and a.available_at >= wanted.since -- see floors.rs
      and (wanted.backfills or not a.backfill)
    order by a.available_at, a.run_id
    limit least(wanted.room - (select count(*) from urgent t where t.target = wanted.target), $3 - (select count(*) from urgent))
    for update of a skip locked
  ) one
  order by one.available_at, one.run_id
  limit $3 - (select count(*) from urgent)
), patient as materialized (
  select one.*, wanted.target
  from wanted
  cross join lateral (
    select a.ctid as place, a.priority, a.available_at, a.run_id
    from everbell.active_runs a
    where a.target = wanted.target and a.priority < 0 and not a.held and not a.paused and a.status = 'pending'
      and a.available_at <= $4
      and (wanted.backfills or not a.backfill)
    order by a.priority desc, a.available_at, a.run_id
    limit least(wanted.room - (select count(*) from urgent t where t.target = wanted.target)
                  - (select count(*) from usual t where t.target = wanted.target),
                $3 - (select count(*) from urgent) - (select count(*) from usual))
    for update of a skip locked
  ) one
  order by one.priority desc, one.available_at, one.run_id
  limit $3 - (select count(*) from urgent) - (select count(*) from usual)
), ready as (
  select * from urgent union all select * from usual union all select * from patient
), asked as materialized (
  -- The targets of which a held run would start before another, or take a place that is left: in a deep backlog none.
  select wanted.target, least(wanted.room, $3) as room, wanted.backfills
  from wanted
  cross join lateral (
    select h.priority, h.available_at, h.run_id from everbell.active_runs h
    where h.target = wanted.target and h.held and not h.paused
    order by h.priority desc, h.available_at, h.run_id
    limit 1
  ) first
  where least(wanted.room, $3) > (
    select count(*) from ready r
    where r.target = wanted.target and (-r.priority, r.available_at, r.run_id) < (-first.priority, first.available_at, first.run_id)
  )
), lanes as (
  -- The first held run of each job and org: from one to the next is one step on the index, however many wait there.
  (
    select a.job_id, a.org_id, a.backfill, a.run_id, a.target, a.available_at, a.paused, a.max_concurrent
    from everbell.active_runs a
    where a.held and a.job_id >= '00000000-0000-0000-0000-000000000000' and exists (select from asked)
    order by a.job_id, a.org_id, a.backfill, a.run_id
    limit 1
  )
  union all
  select next.* from lanes l
  cross join lateral (
    select a.job_id, a.org_id, a.backfill, a.run_id, a.target, a.available_at, a.paused, a.max_concurrent
    from everbell.active_runs a
    where a.held and (a.job_id, a.org_id, a.backfill) > (l.job_id, l.org_id, l.backfill)
    order by a.job_id, a.org_id, a.backfill, a.run_id
    limit 1
  ) next
), free as materialized (
  select l.run_id, l.target, l.backfill
  from lanes l
  where l.available_at <= $4 and not l.paused
    and (select count(*) from everbell.active_runs b
         where b.job_id = l.job_id and b.org_id = l.org_id and not b.held and b.backfill = l.backfill) < l.max_concurrent
), turns as materialized (
  select one.*, asked.target
  from asked
  cross join lateral (
    select a.ctid as place, a.priority, a.available_at, a.run_id
    from free f
    cross join everbell.active_runs a
    where f.target = asked.target and (asked.backfills or not f.backfill)
      and a.run_id = any(array[f.run_id]) and (a.status = 'pending' and a.held and not a.paused) is true
    order by a.priority desc, a.available_at, a.run_id
    limit asked.room
    for update of a skip locked
  ) one
), ranked as (
  -- Only if a held run starts, which is seldom.
  select place, target, priority, available_at, run_id,
         row_number() over (partition by target order by priority desc, available_at, run_id) as number
  from (select * from ready union all select * from turns) both_kinds
), picked as (
  select place from ready where not exists (select from turns)
  union all (
    select r.place from ranked r join wanted on wanted.target = r.target and r.number <= wanted.room
    where exists (select from turns)
    order by r.priority desc, r.available_at, r.run_id
    limit $3
  )
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
