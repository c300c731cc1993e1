with gone as (
  delete from everbell.active_runs where run_id = any($1)
)
delete from everbell.runs where id = any($1)
