-- The lower bound is before every time, and makes the plan enter the index.
select next_run_at from everbell.timers where next_run_at >= $1 order by next_run_at limit 1
