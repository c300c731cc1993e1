select run_id, job_id, attempt from everbell.active_runs
where status = 'running' and lease_until < $1 order by lease_until, run_id limit $2
