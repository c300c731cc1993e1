-- What is at work is marked too: it waits before its next attempt.
update everbell_active_runs set paused = ?2 where job_id = ?1 and paused <> ?2
