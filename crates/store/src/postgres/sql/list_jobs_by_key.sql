-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
with page as materialized (
  select s.id from (
    select j.id, j.job_key, j.version, j.last_run_id from everbell.job_rows j
    where {postgres/parts/filter_jobs.sql as j}
      and ($12::text is null or j.job_key collate "C" > $12 or (j.job_key = $12 and j.version < $13))
    order by j.job_key collate "C", j.version desc offset 0
  ) s
  where {postgres/parts/filter_last_runs.sql as s}
  order by s.job_key collate "C", s.version desc limit $14
)
select {columns of job_rows as j} from page p join everbell.job_rows j on j.id = p.id order by j.job_key collate "C", j.version desc
