-- Never shorter: a statement that was given up and arrives late must not take back what a later one has granted.
update everbell.active_runs set lease_until = greatest(lease_until, $3)
where runner_id = $1 and status = 'running'
  and (lease_until >= $2 or exists (select from everbell.instances where id = $1 and lease_until >= $2))
returning run_id, attempt, cancel_by
