select run_id, (select r.job_id from everbell.runs r where r.id = run_id) as job_id, attempt, earlier from everbell.active_runs
where runner_id = $1 and status = 'running' order by run_id limit $2
