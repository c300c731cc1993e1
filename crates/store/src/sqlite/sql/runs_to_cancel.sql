-- A comparison, which an index can answer.
select run_id, attempt, cancel_by from everbell_active_runs
where cancel_by >= '' and runner_id = ?1 and status = 'running' order by run_id
