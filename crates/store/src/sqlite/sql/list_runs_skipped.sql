-- The partial index has only skipped runs. Nobody executed them, so nobody is their instance and nothing failed.
select {columns of run_rows as v} from everbell_run_rows v where v.id in (
  select r.id from everbell_runs r indexed by everbell_runs_skipped
  where r.skip_reason is not null and r.id < ?1 and r.id >= ?2
    and (?3 is null or 'skipped' in (select value from json_each(?3)))
    and (?4 is null or r.target in (select value from json_each(?4)))
    and (?5 is null or case substr(r.trigger, 1, instr(r.trigger, ':') - 1)
                       when 'schedule' then 'scheduled' when 'ad_hoc' then 'ad_hoc' when 'after' then 'after' else 'manual' end = ?5)
    and (?6 is null or r.org_id = ?6)
    and ?7 is null and ?8 is null
    and (?10 is null or r.job_id in (
      select j.id from everbell_jobs j where instr(j.labels, '{' || ?10) = 1 or instr(j.labels, ',' || ?10)))
  order by r.id desc limit ?9
)
