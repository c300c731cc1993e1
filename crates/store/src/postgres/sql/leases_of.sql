select run_id, job_id, attempt from everbell.active_runs
where runner_id = $1 and status = 'running' order by run_id limit $2
