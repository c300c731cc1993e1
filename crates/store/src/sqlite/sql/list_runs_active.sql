select {columns of run_rows as v} from everbell_run_rows v where v.id in (
  select a.run_id from everbell_active_runs a cross join everbell_runs r
  where r.id = a.run_id and a.run_id < ?1 and a.run_id >= ?2
    and (?3 is null or a.status in (select value from json_each(?3)))
    and (?4 is null or a.target in (select value from json_each(?4)))
    and (?5 is null or case substr(r.trigger, 1, instr(r.trigger, ':') - 1)
                       when 'schedule' then 'scheduled' when 'ad_hoc' then 'ad_hoc' when 'after' then 'after' else 'manual' end = ?5)
    and (?6 is null or r.org_id = ?6)
    and (?7 is null or a.runner_id = ?7)
    and (?8 is null or a.failure_code = ?8)
    and (?11 is null or r.job_id in (select unhex(value) from json_each(?11)))
    and (?10 is null or r.job_id in (
      select j.id from everbell_jobs j where instr(j.labels, '{' || ?10) = 1 or instr(j.labels, ',' || ?10)))
  order by a.run_id desc limit ?9
)
