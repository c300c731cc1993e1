select run_id, attempt, cancel_by from everbell_active_runs where runner_id = ?1 and status = 'running' order by run_id
