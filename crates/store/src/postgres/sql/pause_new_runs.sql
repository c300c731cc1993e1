-- Runs that were just inserted, for a job that was paused after somebody had asked for them.
update everbell.active_runs set paused = true where run_id = any($1)
