update everbell_active_runs
set status = 'running', held = 0, attempt = attempt + 1, runner_id = ?2, claimed_at = ?3, started_at = ?3,
    lease_until = ?4, failure_code = null, failure_message = null, failure_details = null, output = null
where run_id in (select unhex(value) from json_each(?1)) and status = 'pending'
