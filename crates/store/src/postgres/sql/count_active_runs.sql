select target, status, count(*) as runs from active_runs group by target, status
