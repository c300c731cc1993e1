-- How many of the oldest 10,000 due timers are of other targets than these.
select count(*)
from (select target from everbell.timers where next_run_at >= $1 and next_run_at <= $2 order by next_run_at limit 10000) due
where target <> all($3)
