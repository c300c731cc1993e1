-- What a list would have in all, up to a limit, so that a large one costs no more than that.
select count(*) from (
  select 1 from everbell_jobs j
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
    and (?6 is null or exists (
      select 1 from everbell_job_rows s
      where s.id = j.id and (
        ((instr(?6, 'failed') or instr(?6, 'canceled')) and (
              select o.status from everbell_outcomes o indexed by everbell_outcomes_bad where o.run_id = s.last_run_id and o.status <> 'succeeded'
            ) in (select value from json_each(?6)))
        or (instr(?6, 'skipped') and (
              select true from everbell_runs k indexed by everbell_runs_skipped where k.id = s.last_run_id and k.skip_reason is not null))
        or ((instr(?6, 'pending') or instr(?6, 'running')) and (
              select a.status from everbell_active_runs a where a.run_id = s.last_run_id) in (select value from json_each(?6)))
        or (instr(?6, 'succeeded') and (select o.status from everbell_outcomes o where o.run_id = s.last_run_id) = 'succeeded'))))
  limit ?12
)
