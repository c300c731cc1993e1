-- What is at work is marked too: it waits before its next attempt. Runs of a backfill that goes on during a pause are not held. In
-- the order in which everybody locks them.
update everbell.active_runs set paused = $2
where run_id = any(array(
  select a.run_id from everbell.active_runs a
  where a.job_id = $1 and a.paused <> $2 and not ($2 and a.backfill and exists (
    select from everbell.runs r join everbell.backfills b on b.run_trigger = r.trigger
    where r.id = a.run_id and b.is_open and b.paused_ok))
  order by a.run_id for update))
