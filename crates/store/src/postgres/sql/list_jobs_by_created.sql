-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
with page as materialized (
  select s.id from (
    select j.id, j.created_at, j.last_run_id from everbell.job_rows j
    where {postgres/parts/filter_jobs.sql as j}
      and ($13::uuid is null or j.created_at < $12 or (j.created_at = $12 and j.id < $13))
    order by j.created_at desc, j.id desc offset 0
  ) s
  where {postgres/parts/filter_last_runs.sql as s}
  order by s.created_at desc, s.id desc limit $14
)
select {columns of job_rows as j} from page p join everbell.job_rows j on j.id = p.id order by j.created_at desc, j.id desc
