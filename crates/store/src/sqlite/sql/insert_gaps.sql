insert into everbell_gaps (id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, created_at)
select unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
       value ->> 7, ?2
from jsonb_each(?1)
where true
on conflict do nothing
returning id
