update everbell.active_runs
set lease_until = greatest(lease_until, $4),
    progress = case when $5 then $6 else progress end,
    progress_message = case when $5 then $7 else progress_message end,
    output = case when $8 then $10 else output end
where run_id = $1 and attempt = $2 and status = 'running' and runner_id = $3
  and (not $8 or output is not distinct from $9)
returning run_id
