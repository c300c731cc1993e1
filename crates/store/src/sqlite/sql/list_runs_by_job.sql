-- By `at`, which is the order of the index; ids begin with its milliseconds, so this is the order of ids. (In the same
-- millisecond a job has one slot at the most, and runs by hand, whose `at` is the millisecond.)
select {columns of run_rows as v} from everbell_run_rows v where v.id in (
  select r.id from everbell_runs r
  left join everbell_active_runs a on a.run_id = r.id
  left join everbell_outcomes o on o.run_id = r.id
  where r.job_id = ?11 and r.at <= ?12 and r.at >= ?13 and r.id < ?1 and r.id >= ?2
    and (?3 is null or case when r.skip_reason is not null then 'skipped' else coalesce(a.status, o.status) end
                       in (select value from json_each(?3)))
    and (?4 is null or r.target in (select value from json_each(?4)))
    and (?5 is null or case substr(r.trigger, 1, instr(r.trigger, ':') - 1)
                       when 'schedule' then 'scheduled' when 'ad_hoc' then 'ad_hoc' when 'after' then 'after' else 'manual' end = ?5)
    and (?6 is null or r.org_id = ?6)
    and (?7 is null or coalesce(a.runner_id, o.runner_id) = ?7)
    and (?8 is null or coalesce(a.failure_code, o.failure_code) = ?8)
    and (?10 is null or r.job_id in (
      select j.id from everbell_jobs j where instr(j.labels, '{' || ?10) = 1 or instr(j.labels, ',' || ?10)))
  order by r.at desc, r.id desc limit ?9
)
