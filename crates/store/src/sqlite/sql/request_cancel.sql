update everbell_active_runs set cancel_by = coalesce(cancel_by, ?2)
where run_id in (select unhex(value) from json_each(?1)) and status = 'running'
returning run_id
