update everbell.instances
set heartbeat_at = case when heartbeat_at > $2 then $1 else heartbeat_at end, lease_until = least(lease_until, $3)
where heartbeat_at > $2 or lease_until > $3
