-- Runs that were just inserted, for a job that was paused after somebody had asked for them.
update everbell_active_runs set paused = 1 where run_id in (select unhex(value) from json_each(?1))
