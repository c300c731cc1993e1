update everbell.instances
set heartbeat_at = case when heartbeat_at > $2 then $1 else heartbeat_at end,
    -- An instance of an older release has none, and keeps none.
    lease_until = case when lease_until > $3 then $3 else lease_until end
where heartbeat_at > $2 or lease_until > $3
