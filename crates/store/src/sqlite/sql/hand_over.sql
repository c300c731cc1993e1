-- ?3 holds every run that was handed over. Handed over again, a run gets a longer lease and nothing else.
update everbell_active_runs
set runner_id = ?3, lease_until = case when runner_id = ?3 then max(lease_until, ?4) else ?4 end,
    remote_lease = ?5, remote_deadline = ?6,
    progress = case when runner_id = ?3 then progress end,
    progress_message = case when runner_id = ?3 then progress_message end,
    output = case when runner_id = ?3 then output else coalesce(?7, output) end
where run_id = ?1 and attempt = ?2 and status = 'running'
returning run_id
