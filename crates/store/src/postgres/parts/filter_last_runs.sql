-- How the last run of a job ended.
($6::text[] is null
  or ($6 && array['failed', 'canceled']
      and (select o.status from everbell.outcomes o where o.run_id = {row}.last_run_id and o.status <> 'succeeded') = any($6))
  or ('skipped' = any($6) and (select true from everbell.runs k where k.id = {row}.last_run_id and k.skip_reason is not null))
  or ($6 && array['pending', 'running'] and (select a.status from everbell.active_runs a where a.run_id = {row}.last_run_id) = any($6))
  or ('succeeded' = any($6) and (select o.status from everbell.outcomes o where o.run_id = {row}.last_run_id) = 'succeeded'))
