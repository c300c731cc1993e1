-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
-- What never ran comes last, as if at the beginning of time.
-- `+` keeps the scan in the order of the table: in that of the ids each job would be looked up.
with page as materialized (
  select s.id from (
    select j.id, iif(?6 is null, null, j.last_run_id) as last_run_id from everbell_job_rows j
    where {sqlite/parts/filter_jobs.sql as j}
      and (?13 is null or (coalesce(j.last_run_at, -9223372036854775807), j.id) < (coalesce(?12, -9223372036854775807), ?13))
    order by coalesce(j.last_run_at, -9223372036854775807) desc, +j.id desc limit -1
  ) s
  where {sqlite/parts/filter_last_runs.sql as s}
  limit ?14
)
select {columns of job_rows as j} from page p cross join everbell_job_rows j where j.id = p.id
order by coalesce(j.last_run_at, -9223372036854775807) desc, j.id desc
