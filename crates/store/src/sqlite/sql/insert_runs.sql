-- A run whose slot or id exists already is passed over and not returned.
insert into everbell_runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, payload, skip_reason,
                  skip_detail, catch_up, folded, local_date, trace_context)
select unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5, ?2, value ->> 6,
       value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14
from jsonb_each(?1)
where true
on conflict do nothing
returning id
