select id, target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished, refusal, answered_at
from everbell.inbox
where answered_at is not null and refusal is not null order by answered_at desc, id desc limit $1
