-- Whether it drains is the operators' to say, so a heartbeat of a known instance leaves that alone.
insert into everbell_instances (id, host, pid, version, roles, targets, started_at, heartbeat_at, draining, clock_skew_ms, process)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
on conflict (id) do update
set host = excluded.host, pid = excluded.pid, version = excluded.version, roles = excluded.roles,
    targets = excluded.targets, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at,
    clock_skew_ms = excluded.clock_skew_ms,
    process = excluded.process
returning draining
