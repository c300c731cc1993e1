-- By the unique key of slots, for each version.
select v.id, v.at, v.trigger, v.status, v.attempt
from everbell.jobs j
cross join unnest($3::timestamptz[]) as s (at)
cross join lateral (
  select id from everbell.runs where job_id = j.id and at = s.at and org_id = $2 and nonce = 0 offset 0
) r
cross join lateral (select id, at, trigger, status, attempt from everbell.run_rows where id = r.id offset 0) v
where j.job_key = $1
