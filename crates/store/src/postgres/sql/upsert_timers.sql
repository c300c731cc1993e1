-- The mark never goes back, whatever a decision says.
insert into everbell.timers (job_id, org_id, target, next_run_at, last_slot_at, rescheduled_from, last_local_date, error)
select * from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                     $8::text[])
on conflict (job_id, org_id) do update
set target = excluded.target, next_run_at = excluded.next_run_at,
    last_slot_at = greatest(timers.last_slot_at, excluded.last_slot_at), rescheduled_from = excluded.rescheduled_from,
    last_local_date = excluded.last_local_date, error = excluded.error
