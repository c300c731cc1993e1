-- Never shorter: a statement that was given up and arrives late must not take back what a later one has granted.
update everbell_active_runs set lease_until = max(lease_until, ?3)
where runner_id = ?1 and status = 'running'
  and (lease_until >= ?2 or exists (select 1 from everbell_instances i where i.id = ?1 and i.lease_until >= ?2))
returning run_id, attempt, cancel_by
