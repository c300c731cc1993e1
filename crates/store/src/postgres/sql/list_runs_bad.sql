-- The partial index has only runs that did not succeed, in the order of ids.
select v.* from (
  select run_id from outcomes where status <> 'succeeded' and run_id < $1 and run_id >= $2 order by run_id desc
) o join run_rows v on v.id = o.run_id
where true
  and ($3::text[] is null or status = any($3))
  and ($4::text[] is null or target = any($4))
  and ($5::text is null or (case when trigger like 'schedule:%' then 'scheduled' when trigger like 'ad\_hoc:%' then 'ad_hoc' else 'manual' end) = $5)
  and ($6::text is null or org_id = $6)
  and ($7::uuid is null or runner_id = $7)
  and ($8::text is null or failure_code = $8)
order by v.id desc limit $9
