-- What the trigger runs_active does not know of runs that were just inserted. Most have nothing to add.
update everbell_active_runs set held = g.held, max_concurrent = g.max_concurrent, priority = g.priority,
    backfill = g.backfill
from (
  select unhex(value ->> 0) as run_id, value ->> 1 as held, value ->> 2 as max_concurrent, value ->> 3 as priority,
         value ->> 4 as backfill
  from jsonb_each(?1)
) g
where everbell_active_runs.run_id = g.run_id
