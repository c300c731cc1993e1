-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
-- What never fires comes last, as if at the end of time. For filters that few jobs pass: all are read, and those are sorted.
-- `+` keeps the scan in the order of the table: in that of the ids each job would be looked up.
with page as materialized (
  select s.id from (
    select j.id, iif(?6 is null, null, j.last_run_id) as last_run_id from everbell_job_rows j
    where
      (?1 is null or j.status in (select value from json_each(?1)))
      and (?1 is null or instr(?1, '"latest"') = 0 or not exists (
        select 1 from everbell_jobs l where l.job_key = j.job_key and l.version > j.version))
      and (?2 is null or j.target in (select value from json_each(?2)))
      and (?3 is null or j.job_key = ?3)
      and (?4 is null or instr(lower(j.job_key), ?4) or instr(lower(j.target), ?4) or instr(lower(j.description), ?4))
      and (?5 is null or j.source = ?5)
      and (?7 is null or (j.error is not null) = ?7)
      and (?8 is null or (j.consecutive_failures > 0) = ?8)
      and (?9 is null or (j.schedule_type = 'one_time') = ?9)
      and (?10 is null or exists (select 1 from everbell_timers n where n.job_id = j.id and n.next_run_at is not null) = ?10)
      and (?11 is null or instr(j.labels, '{' || ?11) = 1 or instr(j.labels, ',' || ?11))
      and (?13 is null or (coalesce(j.next_run_at, j.next_org_run_at, 9223372036854775807), j.id) > (coalesce(?12, 9223372036854775807), ?13))
    order by coalesce(j.next_run_at, j.next_org_run_at, 9223372036854775807), +j.id limit -1
  ) s
  where ?6 is null
    or ((instr(?6, 'failed') or instr(?6, 'canceled')) and (
          select o.status from everbell_outcomes o indexed by everbell_outcomes_bad where o.run_id = s.last_run_id and o.status <> 'succeeded'
        ) in (select value from json_each(?6)))
    or (instr(?6, 'skipped') and (
          select true from everbell_runs k indexed by everbell_runs_skipped where k.id = s.last_run_id and k.skip_reason is not null))
    or ((instr(?6, 'pending') or instr(?6, 'running')) and (
          select a.status from everbell_active_runs a where a.run_id = s.last_run_id) in (select value from json_each(?6)))
    or (instr(?6, 'succeeded') and (select o.status from everbell_outcomes o where o.run_id = s.last_run_id) = 'succeeded')
  limit ?14
)
select {columns of job_rows as j} from page p cross join everbell_job_rows j where j.id = p.id
order by coalesce(j.next_run_at, j.next_org_run_at, 9223372036854775807), j.id
