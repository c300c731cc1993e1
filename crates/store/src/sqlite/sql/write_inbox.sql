insert into everbell_inbox (target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) returning id
