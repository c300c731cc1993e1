-- The lease of an instance covers every run that it holds: a run is held until the later of its own lease, which the claim
-- granted, and that of its instance. Null for instances of older releases, whose runs count by their own leases.
-- `losses` grows when runs of the instance are recorded as lost, so that it looks which ones.
alter table instances add column lease_until timestamptz;
alter table instances add column losses bigint not null default 0;

-- A heartbeat asks which runs to cancel. Few are at any time. By no other column: a start must stay a HOT update.
create index active_runs_canceled on active_runs (cancel_by) where cancel_by is not null;

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
       o.finished_at,
       case when a.lease_until is not null then
         greatest(a.lease_until, (select i.lease_until from instances i where i.id = a.runner_id)) end as lease_until,
       a.cancel_by,
       coalesce(a.failure_code, o.failure_code) as failure_code,
       coalesce(a.failure_message, o.failure_message) as failure_message,
       coalesce(a.failure_details, o.failure_details) as failure_details,
       case when a.status = 'pending' and a.attempt > 0 then a.available_at end as next_attempt_at,
       o.result,
       coalesce(a.earlier, o.earlier) as earlier, r.trace_context
from runs r
left join jobs j on j.id = r.job_id
left join active_runs a on a.run_id = r.id
left join outcomes o on o.run_id = r.id;
