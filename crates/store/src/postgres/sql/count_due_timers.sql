select count(*) as due_timers, min(next_run_at) as oldest_due_at from everbell.timers where next_run_at <= $1
