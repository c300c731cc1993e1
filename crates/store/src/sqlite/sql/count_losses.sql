-- Before the runs are settled, which takes them from their runners.
update everbell_instances set losses = losses + 1 where id in
  (select a.runner_id from json_each(?1) e cross join everbell_active_runs a where a.run_id = unhex(e.value) and a.status = 'running')
