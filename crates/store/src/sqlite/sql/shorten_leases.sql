-- A remote side may be silent for as long as it was granted, which may be longer than the lease of an instance.
update everbell_active_runs
set lease_until = ?1 + case when runner_id = zeroblob(16) then coalesce(remote_lease, 0) * 1000 else 0 end
where status = 'running'
  and lease_until > ?1 + case when runner_id = zeroblob(16) then coalesce(remote_lease, 0) * 1000 else 0 end
