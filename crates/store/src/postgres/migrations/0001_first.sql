-- Cold: one row for each version of a job. Immutable but for the state columns below the line.
create table jobs (
  id                   uuid primary key,
  job_key              text not null,
  version              integer not null check (version >= 1),
  target               text not null,
  payload              text not null,
  schedule_type        text not null check (schedule_type in ('one_time', 'recurring')),
  cron_expression      text,
  run_at               timestamptz,
  timezone             text not null,
  anchor_at            timestamptz not null,
  start_at             timestamptz,
  end_at               timestamptz,
  dst_gap              text not null check (dst_gap in ('shift', 'skip')),
  dst_fold             text not null check (dst_fold in ('first', 'last', 'both')),
  scope                text not null check (scope in ('global', 'per_org')),
  policies             text not null,
  labels               text not null,
  description          text not null,
  source               text not null check (source in ('api', 'config', 'code')),
  content_hash         bytea not null,
  supersedes_job_id    uuid references jobs (id),
  created_by           text not null,
  created_at           timestamptz not null,
  -- state
  status               text not null check (status in ('active', 'paused', 'retired')),
  error                text,
  pause_reason         text,
  paused_by            text,
  paused_at            timestamptz,
  paused_until         timestamptz,
  revision             bigint not null check (revision >= 1),
  consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
  updated_by           text not null,
  updated_at           timestamptz not null,
  unique (job_key, version),
  check ((schedule_type = 'recurring') = (cron_expression is not null)),
  check ((schedule_type = 'one_time') = (run_at is not null)),
  check ((status = 'paused') = (pause_reason is not null)),
  check ((pause_reason is null) = (paused_at is null) and (pause_reason is null) = (paused_by is null))
);
create unique index jobs_living on jobs (job_key) where status <> 'retired';
create index jobs_target on jobs (target, status);
create index jobs_paused_until on jobs (paused_until) where paused_until is not null;
-- Almost empty, so that a batch of successes finds out at no cost that there is nothing to clear.
create index jobs_failing on jobs (id) where consecutive_failures > 0;
create index jobs_per_org on jobs (job_key) where scope = 'per_org' and status <> 'retired';

-- Hot and narrow. next_run_at is null while disarmed, so the due query reads nothing else. The target stands here so
-- that timers which nobody can serve are passed over without looking at their jobs. The last run of a job that fires for
-- no org stands here too, because its timer is written with each of its runs: lists of jobs need not look into the history.
create table timers (
  job_id           uuid not null references jobs (id),
  org_id           text collate "C" not null default '',
  target           text not null,
  next_run_at      timestamptz,
  last_slot_at     timestamptz not null,
  rescheduled_from timestamptz,
  last_local_date  text,
  error            text,
  last_run_at      timestamptz,
  last_run_id      uuid,
  primary key (job_id, org_id)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0);
create index timers_due on timers (next_run_at) where next_run_at is not null;
-- Almost empty: timers of orgs whose zone or override cannot be read.
create index timers_errored on timers (org_id) where error is not null;

-- Tenants. `changed_at` is when something changed that timers care about, `waiting` that nobody looked at them since. One that
-- is deleted stays until its timers are gone.
create table orgs (
  id         text collate "C" primary key,
  name       text not null,
  settings   text not null,
  timezone   text not null,
  enabled    boolean not null,
  deleted    boolean not null,
  changed_at timestamptz not null,
  moved_from text,
  moved_at   timestamptz,
  revision   bigint not null check (revision >= 1),
  created_at timestamptz not null,
  updated_by text not null,
  updated_at timestamptz not null,
  waiting    boolean not null,
  check ((moved_from is null) = (moved_at is null))
);
create index orgs_waiting on orgs (id) where waiting;
create index orgs_deleted on orgs (id) where deleted;

-- What an org wants of a job, in all its versions.
create table org_overrides (
  org_id          text collate "C" not null references orgs (id) on delete cascade,
  job_key         text not null,
  enabled         boolean not null,
  cron_expression text,
  updated_by      text not null,
  updated_at      timestamptz not null,
  primary key (org_id, job_key)
);

-- Walks over all orgs of a job, and how far each came. Those of one key are made one after the other.
create table sweeps (
  id         uuid primary key,
  job_id     uuid not null references jobs (id),
  job_key    text not null,
  work       text not null check (work in ('arm', 'resume', 'run_now', 'backfill')),
  detail     text not null,
  actor      text not null,
  at         timestamptz not null,
  reached    text collate "C",
  seen       bigint not null check (seen >= 0),
  stepped_at timestamptz not null
);

-- A run as facts: appended here when it is planned, never changed. `at` is the slot, or the time of the request of a run
-- by hand; `nonce` is 0 for a slot, which makes the slot unique, and random for a run by hand. No reference to jobs: its
-- check would lock the job at every fire, and jobs are never deleted.
create table runs (
  id              uuid primary key,
  job_id          uuid,
  org_id          text not null default '',
  at              timestamptz not null,
  nonce           bigint not null,
  scheduled_at    timestamptz not null,
  created_at      timestamptz not null,
  trigger         text not null,
  target          text not null,
  payload         text,
  skip_reason     text check (skip_reason in ('overlap', 'dependency', 'operator')),
  skip_detail     text,
  catch_up        boolean not null,
  folded          bigint not null check (folded >= 0),
  local_date      text,
  check ((skip_reason is null) = (skip_detail is null)),
  unique (job_id, at, org_id, nonce)
);
create index runs_skipped on runs (id) where skip_reason is not null;

-- Tiny: where a run lives while it is pending or running. `job_id` is the lane it is in: the newest version of its job, so that
-- runs of all versions are in each other's way. Of which version it is stands in `runs`.
create table active_runs (
  run_id           uuid primary key,
  job_id           uuid,
  org_id           text not null default '',
  target           text not null,
  status           text not null check (status in ('pending', 'running')),
  held             boolean not null,
  max_concurrent   integer not null,
  attempt          integer not null check (attempt >= 0),
  available_at     timestamptz not null,
  runner_id        uuid,
  claimed_at       timestamptz,
  started_at       timestamptz,
  lease_until      timestamptz,
  cancel_by        text,
  failure_code     text,
  failure_message  text,
  failure_details  text,
  output           text,
  check ((status = 'running') = (lease_until is not null)),
  check (status = 'pending' or (runner_id is not null and not held and attempt >= 1))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0,
        toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_scale_factor = 0);
create index active_runs_job on active_runs (job_id, org_id);
-- Only for who names a target. A plan that was made while the table was empty would take it for any run_id as well, and
-- then read the whole of it for each run.
create index active_runs_target on active_runs (target, available_at, run_id) where target is not null;

-- Appended at the end, never changed.
create table outcomes (
  run_id          uuid primary key,
  status          text not null check (status in ('succeeded', 'failed', 'canceled')),
  attempt         integer not null,
  runner_id       uuid,
  claimed_at      timestamptz,
  started_at      timestamptz,
  finished_at     timestamptz not null,
  failure_code    text,
  failure_message text,
  failure_details text,
  result          text,
  output          text,
  check ((status = 'succeeded') = (failure_code is null))
);
create index outcomes_bad on outcomes (run_id) where status <> 'succeeded';

create table gaps (
  id            uuid primary key,
  job_id        uuid not null,
  org_id        text not null default '',
  first_slot_at timestamptz not null,
  last_slot_at  timestamptz not null check (last_slot_at >= first_slot_at),
  slots         bigint not null check (slots >= 1),
  reason        text not null check (reason in ('missed', 'coalesced', 'paused', 'dst_gap', 'expired', 'errored')),
  actor         text,
  created_at    timestamptz not null
);
create index gaps_job on gaps (job_id, first_slot_at);

create table instances (
  id            uuid primary key,
  host          text not null,
  pid           bigint not null,
  version       text not null,
  roles         text not null,
  targets       text not null,
  started_at    timestamptz not null,
  heartbeat_at  timestamptz not null,
  draining      boolean not null default false,
  clock_skew_ms bigint not null
);

create table audit (
  id     uuid primary key,
  at     timestamptz not null,
  actor  text not null,
  action text not null,
  object text not null,
  reason text,
  before text,
  after  text
);
create index audit_object on audit (object, id);

create table tokens (
  name         text primary key,
  hash         bytea not null unique,
  role         text not null,
  created_at   timestamptz not null,
  expires_at   timestamptz,
  revoked_at   timestamptz,
  last_used_at timestamptz
);

-- Answers to requests that carried an Idempotency-Key.
create table requests (
  key         text primary key,
  fingerprint bytea not null,
  status      integer,
  body        text,
  created_at  timestamptz not null,
  check ((status is null) = (body is null))
);
create index requests_created on requests (created_at);

-- A job as lists know it, with its timer and its last run, which is none that an operator skipped: that is ahead. A job that
-- fires for each org has neither a timer nor a last run of its own: its last run is looked up.
create view job_rows as
select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.schedule_type, j.timezone,
       j.anchor_at, j.start_at, j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source,
       j.supersedes_job_id, j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at,
       j.paused_until, j.revision, j.consecutive_failures, j.updated_by, j.updated_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date,
       case when j.scope = 'global' then t.last_run_at else
         (select r.at from runs r where r.job_id = j.id and r.skip_reason is distinct from 'operator'
          order by r.at desc limit 1) end as last_run_at,
       case when j.scope = 'global' then t.last_run_id else
         (select r.id from runs r where r.job_id = j.id and r.skip_reason is distinct from 'operator'
          order by r.at desc, r.id desc limit 1) end as last_run_id
from jobs j
left join timers t on t.job_id = j.id and t.org_id = '' and j.scope = 'global';

-- A run as the API knows it: the three tables read together. Without its output, which may be long: lists do not show it.
create view run_rows as
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
       o.result
from runs r
left join jobs j on j.id = r.job_id
left join active_runs a on a.run_id = r.id
left join outcomes o on o.run_id = r.id;
