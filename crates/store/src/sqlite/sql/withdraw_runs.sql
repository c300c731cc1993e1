-- Runs of a backfill that have not started.
delete from everbell_active_runs
where run_id in (select r.id from everbell_runs r where r.id in (select unhex(value) from json_each(?1)) and r.trigger = ?2)
  and status = 'pending' and attempt = 0
returning run_id
