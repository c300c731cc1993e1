-- The partial index has only skipped runs. Nobody executed them, so nobody is their instance and nothing failed.
select {columns of run_rows as v} from everbell.run_rows v where v.id = any(array(
  select r.id from everbell.runs r
  where r.skip_reason is not null and r.id < $1 and r.id >= $2
    and ($3::text[] is null or 'skipped' = any($3))
    and ($4::text[] is null or r.target = any($4))
    and ($5::text is null or (case when r.trigger like 'schedule:%' then 'scheduled' when r.trigger like 'ad\_hoc:%' then 'ad_hoc' when r.trigger like 'after:%' then 'after' else 'manual' end) = $5)
    and ($6::text is null or r.org_id = $6)
    and $7::uuid is null and $8::text is null
    and ($10::text is null or r.job_id = any(array(
      select j.id from everbell.jobs j where starts_with(j.labels, '{' || $10) or position(',' || $10 in j.labels) > 0)))
  order by r.id desc limit $9
))
