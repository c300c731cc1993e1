select {columns of run_rows as v} from everbell.run_rows v where v.id = any(array(
  select a.run_id from everbell.active_runs a
  where a.run_id < $1 and a.run_id >= $2
    and ($3::text[] is null or a.status = any($3))
    and ($4::text[] is null or a.target = any($4))
    and ($5::text is null or (select case when r.trigger like 'schedule:%' then 'scheduled' when r.trigger like 'ad\_hoc:%' then 'ad_hoc' when r.trigger like 'after:%' then 'after' else 'manual' end
                              from everbell.runs r where r.id = a.run_id) = $5)
    and ($6::text is null or a.org_id = $6)
    and ($7::uuid is null or a.runner_id = $7)
    and ($8::text is null or a.failure_code = $8)
    and ($11::uuid[] is null or (select r.job_id from everbell.runs r where r.id = a.run_id) = any($11))
    and ($10::text is null or (select r.job_id from everbell.runs r where r.id = a.run_id) = any(array(
      select j.id from everbell.jobs j where starts_with(j.labels, '{' || $10) or position(',' || $10 in j.labels) > 0)))
  order by a.run_id desc limit $9
))
