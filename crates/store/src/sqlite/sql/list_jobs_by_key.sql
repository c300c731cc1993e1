-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
with page as materialized (
  select s.id from (
    select j.id, iif(?6 is null, null, j.last_run_id) as last_run_id from everbell_job_rows j
    where {sqlite/parts/filter_jobs.sql as j}
      and j.job_key >= coalesce(?12, '') and (?12 is null or j.job_key > ?12 or j.version < ?13)
    order by j.job_key, j.version desc limit -1
  ) s
  where {sqlite/parts/filter_last_runs.sql as s}
  limit ?14
)
select {columns of job_rows as j} from page p cross join everbell_job_rows j where j.id = p.id
order by j.job_key, j.version desc
