-- The attempts of a run that were followed by another one, a line each: `<number> <failure code> <when it ended> <counted or
-- uncounted>`. Null for a run that ended, or is still, in its first attempt. Not checked here: core decides what counts.
alter table active_runs add column earlier text;
alter table outcomes add column earlier text;

-- A run as the API knows it: the three tables read together. Without its output, which may be long: lists do not show it.
create or replace view run_rows as
select r.id, r.job_id, j.job_key, j.version as job_version, r.org_id, r.local_date, r.target,
       coalesce(r.payload, j.payload, '{}') as payload,
       r.trigger, r.nonce = 0 as by_slot, r.at, r.scheduled_at, r.created_at,
       case when r.skip_reason is not null then 'skipped' else coalesce(a.status, o.status) end as status,
       r.skip_reason, r.skip_detail, coalesce(a.held, false) as held, r.catch_up, r.folded,
       coalesce(a.attempt, o.attempt, 0) as attempt,
       coalesce(a.runner_id, o.runner_id) as runner_id,
       coalesce(a.claimed_at, o.claimed_at) as claimed_at,
       coalesce(a.started_at, o.started_at) as started_at,
       o.finished_at, a.lease_until, a.cancel_by,
       coalesce(a.failure_code, o.failure_code) as failure_code,
       coalesce(a.failure_message, o.failure_message) as failure_message,
       coalesce(a.failure_details, o.failure_details) as failure_details,
       case when a.status = 'pending' and a.attempt > 0 then a.available_at end as next_attempt_at,
       o.result,
       coalesce(a.earlier, o.earlier) as earlier
from runs r
left join jobs j on j.id = r.job_id
left join active_runs a on a.run_id = r.id
left join outcomes o on o.run_id = r.id;
