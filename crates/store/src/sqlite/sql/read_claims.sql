-- What a claim needs of the runs that were just started. The jobs are known.
select r.id, r.job_id, r.org_id, r.local_date, r.target, r.payload, r.trigger, r.nonce = 0 as by_slot, r.at,
       r.scheduled_at, r.created_at, r.catch_up, r.folded, a.attempt, a.cancel_requested
from json_each(?1) e cross join active_runs a cross join runs r
where a.run_id = unhex(e.value) and r.id = a.run_id
order by r.scheduled_at, r.id
