-- The W3C trace context of the request that created a one-time job, or a run: `<traceparent>` or `<traceparent> <tracestate>`.
-- Null for recurring jobs and their slots, which follow from the clock. Not checked here: core reads it.
alter table everbell_jobs add column trace_context text;
alter table everbell_runs add column trace_context text;

-- A run as the API knows it: the three tables read together. Without its output, which may be long: lists do not show it.
drop view everbell_run_rows;
create view everbell_run_rows as
select r.id, r.job_id, j.job_key, j.version as job_version, r.org_id, r.local_date, r.target,
       coalesce(r.payload, j.payload, '{}') as payload,
       r.trigger, r.nonce = 0 as by_slot, r.at, r.scheduled_at, r.created_at,
       case when r.skip_reason is not null then 'skipped' else coalesce(a.status, o.status) end as status,
       r.skip_reason, r.skip_detail, coalesce(a.held, 0) as held, r.catch_up, r.folded,
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
       coalesce(a.earlier, o.earlier) as earlier, r.trace_context
from everbell_runs r
left join everbell_jobs j on j.id = r.job_id
left join everbell_active_runs a on a.run_id = r.id
left join everbell_outcomes o on o.run_id = r.id;

-- A job with its timer, or the first fire of its orgs.
drop view everbell_job_rows;
create view everbell_job_rows as
select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.schedule_type, j.timezone,
       j.anchor_at, j.start_at, j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source,
       j.supersedes_job_id, j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at,
       j.paused_until, j.revision, j.consecutive_failures, j.updated_by, j.updated_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date,
       case when j.scope = 'global' then t.last_run_at else
         (select r.at from everbell_runs r where r.job_id = j.id and r.skip_reason is not 'operator'
          order by r.at desc limit 1) end as last_run_at,
       case when j.scope = 'global' then t.last_run_id else
         (select r.id from everbell_runs r where r.job_id = j.id and r.skip_reason is not 'operator'
          order by r.at desc, r.id desc limit 1) end as last_run_id,
       case when j.scope = 'per_org' and j.status = 'active' then
         (select o.next_run_at from everbell_timers o where o.job_id = j.id and o.org_id <> '' and o.next_run_at is not null
          order by o.next_run_at, o.org_id limit 1) end as next_org_run_at,
       case when j.scope = 'per_org' and j.status = 'active' then
         (select o.org_id from everbell_timers o where o.job_id = j.id and o.org_id <> '' and o.next_run_at is not null
          order by o.next_run_at, o.org_id limit 1) end as next_org_id,
       j.declaration, j.trace_context
from everbell_jobs j
left join everbell_timers t on t.job_id = j.id and t.org_id = '' and j.scope = 'global';
