select id, starts_at, ends_at, reason, scope, created_by, created_at, ended_at, ended_by
from everbell.freezes where ends_at > $1 and starts_at <= $2 and (ended_at is null or ended_at > $1)
-- Whoever ends one waits until the timers are written that wait for its end, and wakes them.
for share
