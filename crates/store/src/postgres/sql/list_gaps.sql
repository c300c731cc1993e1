select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor from everbell.gaps
where ($1::uuid is null or job_id = $1)
  and ($9::text is null or job_id = any(array(select id from everbell.jobs where job_key = $9)))
  and ($10::text is null or job_id = any(array(
    select id from everbell.jobs where starts_with(labels, '{' || $10) or position(',' || $10 in labels) > 0)))
  and ($2::text is null or org_id = $2)
  and ($3::text is null or reason = $3)
  and ($4::timestamptz is null or last_slot_at >= $4)
  and ($5::timestamptz is null or first_slot_at < $5)
  and ($7::uuid is null or (first_slot_at, id) < ($6, $7))
order by first_slot_at desc, id desc limit $8
