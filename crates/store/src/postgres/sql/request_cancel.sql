update active_runs set cancel_requested = true where run_id = any($1) and status = 'running' returning run_id
