-- What a list would have in all, up to a limit, so that a large one costs no more than that.
select count(*) from (
  select 1 from everbell_jobs j
  where {sqlite/parts/filter_jobs.sql as j}
    and (?6 is null or exists (
      select 1 from everbell_job_rows s
      where s.id = j.id and {sqlite/parts/filter_last_runs.sql as s}))
  limit ?12
)
