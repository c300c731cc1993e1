-- The runs that ended, in the order of ids: what runs have in common is looked up for the few that an instance has ended.
select {columns of run_rows as v} from everbell.run_rows v where v.id = any(array(
  select o.run_id from everbell.outcomes o
  where o.run_id < $1 and o.run_id >= $2
    and ($3::text[] is null or o.status = any($3))
    and ($4::text[] is null or (select r.target from everbell.runs r where r.id = o.run_id) = any($4))
    and ($5::text is null or (select case when r.trigger like 'schedule:%' then 'scheduled' when r.trigger like 'ad\_hoc:%' then 'ad_hoc' when r.trigger like 'after:%' then 'after' else 'manual' end
                              from everbell.runs r where r.id = o.run_id) = $5)
    and ($6::text is null or (select r.org_id from everbell.runs r where r.id = o.run_id) = $6)
    and ($7::uuid is null or o.runner_id = $7)
    and ($8::text is null or o.failure_code = $8)
    and ($10::text is null or (select r.job_id from everbell.runs r where r.id = o.run_id) = any(array(
      select j.id from everbell.jobs j where starts_with(j.labels, '{' || $10) or position(',' || $10 in j.labels) > 0)))
  order by o.run_id desc limit $9
))
