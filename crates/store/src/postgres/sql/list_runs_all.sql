-- Ids first, in the order of the index; what other tables say is looked up for each run, so that the limit ends the scan.
-- What the planner cannot guess, such as how many runs have a status, could lead it elsewhere if these were joins.
select {columns of run_rows as v} from everbell.run_rows v where v.id = any(array(
  select r.id from everbell.runs r
  where r.id < $1 and r.id >= $2
    and ($3::text[] is null
         or case when r.skip_reason is not null then 'skipped' = any($3)
            else (select o.status from everbell.outcomes o where o.run_id = r.id) = any($3)
                 or r.id in (select a.run_id from everbell.active_runs a where a.status = any($3)) end)
    and ($4::text[] is null or r.target = any($4))
    and ($5::text is null or (case when r.trigger like 'schedule:%' then 'scheduled' when r.trigger like 'ad\_hoc:%' then 'ad_hoc' when r.trigger like 'after:%' then 'after' else 'manual' end) = $5)
    and ($6::text is null or r.org_id = $6)
    and ($7::uuid is null or (select o.runner_id from everbell.outcomes o where o.run_id = r.id) = $7
         or r.id in (select a.run_id from everbell.active_runs a where a.runner_id = $7))
    and ($8::text is null or (select o.failure_code from everbell.outcomes o where o.run_id = r.id) = $8
         or r.id in (select a.run_id from everbell.active_runs a where a.failure_code = $8))
    and ($10::text is null or r.job_id = any(array(
      select j.id from everbell.jobs j where starts_with(j.labels, '{' || $10) or position(',' || $10 in j.labels) > 0)))
  order by r.id desc limit $9
))
