-- What is at work is marked too: it waits before its next attempt. In the order in which everybody locks them.
update everbell.active_runs set paused = $2
where run_id = any(array(select run_id from everbell.active_runs where job_id = $1 and paused <> $2 order by run_id for update))
