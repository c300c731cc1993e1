-- Whether it drains is the operators' to say, so a heartbeat of a known instance leaves that alone. Its lease never becomes
-- shorter: a statement that was given up and arrives late must not take back what a later one has granted.
insert into everbell_instances (id, host, pid, version, roles, targets, started_at, heartbeat_at, draining, clock_skew_ms, process,
                                lease_until)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
on conflict (id) do update
set host = excluded.host, pid = excluded.pid, version = excluded.version, roles = excluded.roles,
    targets = excluded.targets, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at,
    clock_skew_ms = excluded.clock_skew_ms, process = excluded.process,
    lease_until = max(coalesce(lease_until, excluded.lease_until), coalesce(excluded.lease_until, lease_until))
returning draining, losses
