-- By `at` first, which is the order of the index; ids begin with it, so this is the order of ids.
select * from run_rows
where job_id = $10 and at <= $11 and at >= $12 and id < $1 and id >= $2
  and ($3::text[] is null or status = any($3))
  and ($4::text[] is null or target = any($4))
  and ($5::text is null or (case when trigger like 'schedule:%' then 'scheduled' when trigger like 'ad\_hoc:%' then 'ad_hoc' else 'manual' end) = $5)
  and ($6::text is null or org_id = $6)
  and ($7::uuid is null or runner_id = $7)
  and ($8::text is null or failure_code = $8)
order by at desc, id desc limit $9
