select count(*) as due_timers, min(next_run_at) as oldest_due_at from timers indexed by timers_due where next_run_at <= ?1
