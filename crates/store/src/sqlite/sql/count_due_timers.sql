select count(*) as due_timers, min(next_run_at) as oldest_due_at from everbell_timers indexed by everbell_timers_due where next_run_at <= ?1
