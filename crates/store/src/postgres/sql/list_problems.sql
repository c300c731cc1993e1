select id, kind, job_key, org_id, opened_at, closed_at, state from everbell.problems
where ($1::boolean is null or (closed_at is null) = $1)
  and ($2::text is null or kind = $2)
  and ($3::text is null or (job_key = $3 and kind <> 'instance_lost'))
  and ($4::text is null or org_id = $4)
  and ($5::uuid is null or id < $5)
order by id desc limit $6
