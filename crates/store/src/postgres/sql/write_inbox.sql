insert into everbell.inbox (target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished)
values ($1, $2, $3, $4, $5, $6, coalesce($7, current_user), $8, $9, $10) returning id
