-- What is at work is marked too: it waits before its next attempt. Runs of a backfill that goes on during a pause are not held.
update everbell_active_runs as a set paused = ?2
where a.job_id = ?1 and a.paused <> ?2 and not (?2 and a.backfill and exists (
  select 1 from everbell_runs r join everbell_backfills b on b.run_trigger = r.trigger
  where r.id = a.run_id and b.is_open and b.paused_ok))
