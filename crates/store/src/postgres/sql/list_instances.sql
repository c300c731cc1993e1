select id, host, pid, version, roles, targets, started_at, heartbeat_at, draining, clock_skew_ms, process
from everbell.instances order by started_at, id
