select target, status, count(*) as runs from everbell.active_runs group by target, status
