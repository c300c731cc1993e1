insert into everbell.gaps (id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, created_at)
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, $9
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bigint[], $7::text[], $8::text[])
  as g (id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor)
on conflict do nothing
