-- Whose turn it is, and whose failures count, is decided among the runs of all versions: those of the last one go on in the
-- lane of the next. Which version a run is of stays with the run.
-- What a pause holds waits as long as that one is paused.
update everbell_active_runs
set job_id = ?2, paused = paused and exists (select 1 from everbell_jobs j where j.id = ?2 and j.status = 'paused')
where job_id = ?1 and org_id in (select value from json_each(?3))
