select id, target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished
from everbell.inbox where answered_at is null and id <> all ($2) order by id limit $1
