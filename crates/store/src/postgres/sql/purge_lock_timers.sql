with locked as materialized (
  select 1 from everbell.timers t join everbell.jobs j on j.id = t.job_id where j.job_key = $1 order by t.job_id, t.org_id for update of t
)
select count(*) from locked
