-- Before the runs are settled, which takes them from their runners. In order, because two reapers may settle runs of the same.
with runners as materialized (
  select id from everbell.instances
  where id = any(array(select runner_id from everbell.active_runs where run_id = any($1) and status = 'running'))
  order by id for update
)
update everbell.instances set losses = losses + 1 where id = any(array(select id from runners))
