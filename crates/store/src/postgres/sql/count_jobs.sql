-- What a list would have in all, up to a limit, so that a large one costs no more than that.
select count(*) from (
  select 1 from (
    select j.last_run_id from everbell.job_rows j
    where {postgres/parts/filter_jobs.sql as j}
    offset 0
  ) s
  where {postgres/parts/filter_last_runs.sql as s}
  limit $12
) as few
