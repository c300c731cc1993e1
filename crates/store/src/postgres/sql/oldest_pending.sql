select wanted.target, one.available_at
from unnest($1::text[]) as wanted (target)
cross join lateral (
  select a.available_at from everbell.active_runs a
  where a.target = wanted.target and a.status = 'pending' and a.priority = 0 and not a.held and not a.paused
  order by a.available_at, a.run_id
  limit 1
) one
