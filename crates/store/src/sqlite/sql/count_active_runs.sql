select target, status, count(*) as runs from everbell_active_runs group by target, status
