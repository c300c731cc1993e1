update everbell.active_runs set lease_until = $1 where status = 'running' and lease_until > $1
