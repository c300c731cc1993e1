update everbell.active_runs set cancel_by = coalesce(cancel_by, $2) where run_id = any($1) and status = 'running' returning run_id
