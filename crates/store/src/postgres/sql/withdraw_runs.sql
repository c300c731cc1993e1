-- Runs of a backfill that have not started, with the rows of their slots, as if they had never been created.
with gone as (
  delete from everbell.active_runs where run_id = any(array(
    select a.run_id from everbell.active_runs a join everbell.runs r on r.id = a.run_id
    where a.run_id = any($1) and a.status = 'pending' and a.attempt = 0 and r.trigger = $2
    order by a.run_id for update of a))
  returning run_id
)
delete from everbell.runs where id in (select run_id from gone) returning id
