-- First the ids of the page, so that timers and last runs are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
with page as materialized (
  select l.id from (
    select j.id from everbell_jobs j
    where {sqlite/parts/filter_jobs.sql as j}
      and (?13 is null or (j.created_at, j.id) < (?12, ?13))
    order by j.created_at desc, j.id desc limit -1
  ) s cross join everbell_job_rows l
  where l.id = s.id and {sqlite/parts/filter_last_runs.sql as l}
  limit ?14
)
select {columns of job_rows as j} from page p cross join everbell_job_rows j where j.id = p.id
order by j.created_at desc, j.id desc
