select next_run_at from timers where next_run_at > $1 and target = any($2) order by next_run_at limit 1
