-- The partial index has only runs that did not succeed, in the order of ids.
select {columns of run_rows as v} from everbell_run_rows v where v.id in (
  select o.run_id from everbell_outcomes o indexed by everbell_outcomes_bad cross join everbell_runs r
  where r.id = o.run_id and o.status <> 'succeeded' and o.run_id < ?1 and o.run_id >= ?2
    and (?3 is null or o.status in (select value from json_each(?3)))
    and (?4 is null or r.target in (select value from json_each(?4)))
    and (?5 is null or case substr(r.trigger, 1, instr(r.trigger, ':') - 1)
                       when 'schedule' then 'scheduled' when 'ad_hoc' then 'ad_hoc' when 'after' then 'after' else 'manual' end = ?5)
    and (?6 is null or r.org_id = ?6)
    and (?7 is null or o.runner_id = ?7)
    and (?8 is null or o.failure_code = ?8)
    and (?10 is null or r.job_id in (
      select j.id from everbell_jobs j where instr(j.labels, '{' || ?10) = 1 or instr(j.labels, ',' || ?10)))
  order by o.run_id desc limit ?9
)
