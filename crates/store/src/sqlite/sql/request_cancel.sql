update active_runs set cancel_requested = 1
where run_id in (select unhex(value) from json_each(?1)) and status = 'running'
returning run_id
