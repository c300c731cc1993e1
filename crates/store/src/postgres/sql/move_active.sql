-- Whose turn it is, and whose failures count, is decided among the runs of all versions: those of the last one go on in the
-- lane of the next. Which version a run is of stays with the run.
-- What a pause holds waits as long as that one is paused.
update everbell.active_runs
set job_id = $2, paused = paused and exists (select from everbell.jobs j where j.id = $2 and j.status = 'paused')
where run_id = any(array(select run_id from everbell.active_runs where job_id = $1 and org_id = any($3) order by run_id for update))
