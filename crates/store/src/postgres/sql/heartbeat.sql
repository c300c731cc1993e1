-- Whether it drains is the operators' to say, so a heartbeat of a known instance leaves that alone. Its lease never becomes
-- shorter: a statement that was given up and arrives late must not take back what a later one has granted.
with others as materialized (
  -- A small table, as it was before this statement.
  select coalesce(bool_or(id = $1), false) as known,
         coalesce(bool_or(id <> $1 and lease_until is null), false) as unleased,
         coalesce(bool_or(id <> $1 and lease_until < $8), false) as lapsed
  from everbell.instances
), beat as (
  insert into everbell.instances as i (id, host, pid, version, roles, targets, started_at, heartbeat_at, draining, clock_skew_ms,
                              process, lease_until)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
  on conflict (id) do update
  set host = excluded.host, pid = excluded.pid, version = excluded.version, roles = excluded.roles,
      targets = excluded.targets, heartbeat_at = excluded.heartbeat_at, clock_skew_ms = excluded.clock_skew_ms,
      process = excluded.process, lease_until = greatest(i.lease_until, excluded.lease_until)
  returning i.draining, i.losses
)
select beat.draining, not others.known as is_new, beat.losses, others.unleased, others.lapsed,
       a.run_id, a.attempt, a.cancel_by,
       -- Where a thousand others come first, the planner looks closer.
       $13 and coalesce((
         select bool_or(soon.target = any($14)) or count(*) >= 1000
         from (select target from everbell.timers where next_run_at <= $8 order by next_run_at limit 1000) soon
       ), false) as due,
       $13 and exists (
         select from unnest($14::text[]) as wanted (target)
         -- A look into each of the indexes of runs that may start, as in start_runs.
         cross join lateral (
           (select from everbell.active_runs p
            where p.target = wanted.target and p.priority = 0 and not p.held and not p.paused
              and p.status = 'pending' and p.available_at <= $8 limit 1)
           union all
           (select from everbell.active_runs p
            where p.target = wanted.target and p.priority > 0 and not p.held and not p.paused
              and p.status = 'pending' and p.available_at <= $8 limit 1)
           union all
           (select from everbell.active_runs p
            where p.target = wanted.target and p.priority < 0 and not p.held and not p.paused
              and p.status = 'pending' and p.available_at <= $8 limit 1)
           union all
           (select from everbell.active_runs p
            where p.target = wanted.target and p.held and not p.paused and p.available_at <= $8 limit 1)
         ) one
       ) as pending
from beat cross join others
-- A comparison, and in no order, so that the index of the few that are to be canceled is the only way.
left join everbell.active_runs a on a.cancel_by >= '' and a.runner_id = $1 and a.status = 'running'
