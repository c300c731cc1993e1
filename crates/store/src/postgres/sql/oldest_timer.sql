-- The oldest due timer of each of these targets. The lower bound is before every time, and makes the plan enter the index.
select target, min(next_run_at) as next_run_at
from everbell.timers
where next_run_at >= $1 and next_run_at <= $2 and target = any($3)
group by target
