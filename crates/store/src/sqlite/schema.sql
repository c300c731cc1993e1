CREATE TABLE everbell_absences (
  from_at  integer primary key not null,
  until_at integer not null check (until_at > from_at)
) strict;
CREATE TABLE everbell_active_runs (
  run_id           blob primary key not null,
  job_id           blob,
  org_id           text not null default '',
  target           text not null,
  status           text not null check (status in ('pending', 'running')),
  held             integer not null,
  max_concurrent   integer not null,
  attempt          integer not null check (attempt >= 0),
  available_at     integer not null,
  runner_id        blob,
  claimed_at       integer,
  started_at       integer,
  lease_until      integer,
  cancel_by        text,
  failure_code     text,
  failure_message  text,
  failure_details  text,
  output           text, paused integer not null default 0, earlier text, priority integer not null default 0, backfill integer not null default 0, remote_lease integer, remote_deadline integer, progress integer, progress_message text,
  check ((status = 'running') = (lease_until is not null)),
  check (status = 'pending' or (runner_id is not null and not held and attempt >= 1))
) strict, without rowid;
CREATE TABLE everbell_alert_state (
  id         integer primary key check (id = 1),
  generation integer not null,
  looked_at  integer
) strict;
CREATE TABLE everbell_apps (
  source   text not null check (source in ('api', 'config', 'code')),
  app      text not null,
  releases text not null,
  primary key (source, app)
) strict;
CREATE TABLE everbell_audit (
  id     blob primary key not null,
  at     integer not null,
  actor  text not null,
  action text not null,
  object text not null,
  reason text,
  before text,
  after  text
, address text, request_id text, role text) strict;
CREATE TABLE everbell_backfills (
  id           blob primary key not null,
  revision     integer not null check (revision > 0),
  job_key      text not null,
  -- empty for none
  org_id       text not null,
  requested_at integer not null,
  requested_by text not null,
  reason       text,
  from_at      integer not null,
  to_at        integer not null,
  status       text not null check (status in ('running', 'paused', 'stopped', 'done')),
  -- whether it creates runs, or some of its runs are still to be counted
  is_open      integer not null,
  -- whether it goes on while its job is paused
  paused_ok    integer not null,
  -- the trigger of its runs
  run_trigger  text not null,
  -- settings, cursor, runs that are not counted yet, and counts, as JSON
  progress     text not null,
  updated_at   integer not null
) strict;
CREATE TABLE everbell_calendars (
  name            text primary key not null,
  version         integer not null check (version >= 1),
  -- the version that every job has: lower while an edit reaches them
  applied_version integer not null check (applied_version <= version),
  -- in JSON: timezone, dates, weekly
  content         text not null,
  source          text not null check (source in ('api', 'config', 'code')),
  updated_by      text not null,
  created_at      integer not null,
  updated_at      integer not null
) strict;
CREATE TABLE everbell_clock (
  id         integer primary key check (id = 1),
  trusted_at integer not null
) strict;
CREATE TABLE everbell_counted_hours (
  hour       integer primary key not null,
  counted_at integer not null
) strict;
CREATE TABLE everbell_deliveries (
  id              blob primary key not null,
  problem_id      blob,
  rule            text,
  channel         text not null,
  change          text not null,
  message         text not null,
  created_at      integer not null,
  available_at    integer not null,
  status          text not null check (status in ('pending', 'delivered', 'dead')),
  attempt         integer not null check (attempt >= 0),
  next_attempt_at integer not null,
  lease_until     integer,
  error           text,
  ended_at        integer,
  check ((status = 'pending') = (ended_at is null)),
  check ((problem_id is null) = (rule is null))
) strict;
CREATE TABLE everbell_departures (
  id           integer primary key check (id = 1),
  heartbeat_at integer not null
) strict;
CREATE TABLE everbell_freezes (
  id         blob primary key not null,
  starts_at  integer not null,
  ends_at    integer not null check (ends_at > starts_at),
  reason     text not null,
  -- in JSON: label, except
  scope      text not null,
  created_by text not null,
  created_at integer not null,
  -- ended early, by whom
  ended_at   integer,
  ended_by   text,
  check ((ended_at is null) = (ended_by is null))
) strict;
CREATE TABLE "everbell_gaps" (
  id            blob primary key not null,
  job_id        blob not null,
  org_id        text not null default '',
  first_slot_at integer not null,
  last_slot_at  integer not null check (last_slot_at >= first_slot_at),
  slots         integer not null check (slots >= 1),
  reason        text not null check (reason in ('missed', 'coalesced', 'paused', 'dst_gap', 'expired', 'errored', 'excluded', 'frozen', 'incomplete')),
  actor         text,
  created_at    integer not null
) strict;
CREATE TABLE everbell_inbox (
  id          integer primary key autoincrement,
  target      text not null,
  payload     text,
  key         text,
  run_at      text,
  cron        text,
  timezone    text,
  -- the header that a program passes on with its request
  traceparent text,
  role        text,
  -- the answer
  answered_at integer,
  job_key     text,
  refusal     text, priority integer, if_unfinished text,
  check (answered_at is not null or (job_key is null and refusal is null))
) strict;
CREATE TABLE everbell_instances (
  id            blob primary key not null,
  host          text not null,
  pid           integer not null,
  version       text not null,
  roles         text not null,
  targets       text not null,
  started_at    integer not null,
  heartbeat_at  integer not null,
  draining      integer not null default 0,
  clock_skew_ms integer not null
, process text, lease_until integer, losses integer not null default 0) strict;
CREATE TABLE everbell_jobs (
  id                   blob primary key not null,
  job_key              text not null,
  version              integer not null check (version >= 1),
  target               text not null,
  payload              text not null,
  schedule_type        text not null check (schedule_type in ('one_time', 'recurring')),
  cron_expression      text,
  run_at               integer,
  timezone             text not null,
  anchor_at            integer not null,
  start_at             integer,
  end_at               integer,
  dst_gap              text not null check (dst_gap in ('shift', 'skip')),
  dst_fold             text not null check (dst_fold in ('first', 'last', 'both')),
  scope                text not null check (scope in ('global', 'per_org')),
  policies             text not null,
  labels               text not null,
  description          text not null,
  source               text not null check (source in ('api', 'config', 'code')),
  content_hash         blob not null,
  supersedes_job_id    blob references everbell_jobs (id),
  created_by           text not null,
  created_at           integer not null,
  -- state
  status               text not null check (status in ('active', 'paused', 'retired')),
  error                text,
  pause_reason         text,
  paused_by            text,
  paused_at            integer,
  paused_until         integer,
  revision             integer not null check (revision >= 1),
  consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
  updated_by           text not null,
  updated_at           integer not null, declaration text, trace_context text, after_key text,
  unique (job_key, version),
  check ((schedule_type = 'recurring') = (cron_expression is not null)),
  check ((schedule_type = 'one_time') = (run_at is not null)),
  check ((status = 'paused') = (pause_reason is not null)),
  check ((pause_reason is null) = (paused_at is null) and (pause_reason is null) = (paused_by is null))
) strict;
CREATE TABLE everbell_migrations (version integer primary key, applied_at integer not null) strict;
CREATE TABLE everbell_moves (
  id       integer primary key check (id = 1),
  -- 'begun' until the other database is known to have the rows
  state    text not null check (state in ('begun', 'done')),
  -- for people
  moved_to text not null,
  -- the same in one spelling, without user and password
  target   text not null,
  moved_at integer not null
) strict;
CREATE TABLE everbell_org_overrides (
  org_id          text not null references everbell_orgs (id) on delete cascade,
  job_key         text not null,
  enabled         integer not null check (enabled in (0, 1)),
  cron_expression text,
  updated_by      text not null,
  updated_at      integer not null,
  primary key (org_id, job_key)
) strict, without rowid;
CREATE TABLE everbell_orgs (
  id         text primary key not null,
  name       text not null,
  settings   text not null,
  timezone   text not null,
  enabled    integer not null check (enabled in (0, 1)),
  deleted    integer not null check (deleted in (0, 1)),
  changed_at integer not null,
  moved_from text,
  moved_at   integer,
  revision   integer not null check (revision >= 1),
  created_at integer not null,
  updated_by text not null,
  updated_at integer not null,
  waiting    integer not null check (waiting in (0, 1)),
  check ((moved_from is null) = (moved_at is null))
) strict, without rowid;
CREATE TABLE everbell_outcomes (
  run_id          blob primary key not null,
  status          text not null check (status in ('succeeded', 'failed', 'canceled')),
  attempt         integer not null,
  runner_id       blob,
  claimed_at      integer,
  started_at      integer,
  finished_at     integer not null,
  failure_code    text,
  failure_message text,
  failure_details text,
  result          text,
  output          text, earlier text,
  check ((status = 'succeeded') = (failure_code is null))
) strict;
CREATE TABLE everbell_problems (
  id        blob primary key not null,
  kind      text not null,
  job_key   text not null,
  opened_at integer not null,
  closed_at integer,
  -- in JSON: cause, rules that were told, acknowledgement, mute
  state     text not null, org_id text not null default '',
  check (closed_at >= opened_at)
) strict;
CREATE TABLE everbell_requests (
  key         text primary key not null,
  fingerprint blob not null,
  status      integer,
  body        text,
  created_at  integer not null, deed text,
  check ((status is null) = (body is null))
) strict;
CREATE TABLE everbell_run_counters (
  hour          integer not null,
  -- of a recurring job, all versions and orgs together; empty for all one-time jobs with this target
  job_key       text not null,
  -- empty for hours that an earlier release has counted
  target        text not null,
  succeeded     integer not null,
  failed        integer not null,
  canceled      integer not null,
  skipped       integer not null,
  -- microseconds
  took_runs     integer not null,
  took_total    integer not null,
  took_longest  integer not null,
  delay_runs    integer not null,
  delay_total   integer not null,
  delay_longest integer not null,
  -- histograms: bucket:runs, separated by spaces
  took_places   text not null,
  delay_places  text not null,
  -- failure code:runs, separated by spaces
  failures      text not null,
  check (target <> '' or job_key <> ''),
  primary key (hour, job_key, target)
) strict, without rowid;
CREATE TABLE everbell_run_groups (
  -- the job that waits
  job_key   text not null,
  -- the slot or the local date that the runs have in common
  name      text not null,
  opened_at integer not null,
  deadline  integer not null,
  closed_at integer,
  -- the run that the group started
  started   blob,
  -- job, run, status, and whether it counts, in JSON
  runs      text not null,
  primary key (job_key, name)
) strict;
CREATE TABLE everbell_runs (
  id              blob primary key not null,
  job_id          blob,
  org_id          text not null default '',
  at              integer not null,
  nonce           integer not null,
  scheduled_at    integer not null,
  created_at      integer not null,
  trigger         text not null,
  target          text not null,
  payload         text,
  skip_reason     text check (skip_reason in ('overlap', 'dependency', 'operator')),
  skip_detail     text,
  catch_up        integer not null,
  folded          integer not null check (folded >= 0),
  local_date      text, trace_context text,
  check ((skip_reason is null) = (skip_detail is null)),
  unique (job_id, at, org_id, nonce)
) strict, without rowid;
CREATE TABLE everbell_secrets (
  name  text primary key not null,
  value blob not null
) strict;
CREATE TABLE everbell_sessions (
  id           blob primary key not null,
  hash         blob not null unique,
  token_hash   blob not null,
  actor        text not null,
  role         text not null,
  created_at   integer not null,
  expires_at   integer not null,
  last_used_at integer not null,
  address      text,
  user_agent   text
) strict;
CREATE TABLE everbell_sweeps (
  id         blob primary key not null,
  job_id     blob not null references everbell_jobs (id),
  job_key    text not null,
  work       text not null check (work in ('arm', 'resume', 'run_now', 'backfill')),
  detail     text not null,
  actor      text not null,
  at         integer not null,
  reached    text,
  seen       integer not null check (seen >= 0),
  stepped_at integer not null
) strict, without rowid;
CREATE TABLE everbell_targets (
  label      text primary key not null,
  revision   integer not null check (revision >= 1),
  -- the members of a block, in JSON
  definition text not null,
  updated_by text not null,
  created_at integer not null,
  updated_at integer not null
) strict;
CREATE TABLE everbell_timers (
  job_id           blob not null references everbell_jobs (id),
  org_id           text not null default '',
  target           text not null,
  next_run_at      integer,
  last_slot_at     integer not null,
  rescheduled_from integer,
  last_local_date  text,
  error            text,
  last_run_at      integer,
  last_run_id      blob,
  primary key (job_id, org_id)
) strict, without rowid;
CREATE TABLE everbell_tokens (
  name         text primary key not null,
  hash         blob not null unique,
  role         text not null,
  created_at   integer not null,
  expires_at   integer,
  revoked_at   integer,
  last_used_at integer
) strict;
CREATE INDEX everbell_absences_until on everbell_absences (until_at);
CREATE INDEX everbell_active_runs_canceled on everbell_active_runs (cancel_by) where cancel_by is not null;
CREATE INDEX everbell_active_runs_held on everbell_active_runs (job_id, org_id, backfill, run_id) where held;
CREATE INDEX everbell_active_runs_job on everbell_active_runs (job_id, org_id, held);
CREATE INDEX everbell_active_runs_pending on everbell_active_runs (target, priority, available_at)
  where status = 'pending' and not held and not paused;
CREATE INDEX everbell_active_runs_remote on everbell_active_runs (run_id) where remote_lease is not null;
CREATE INDEX everbell_active_runs_waiting on everbell_active_runs (target, priority desc, available_at)
  where held and not paused;
CREATE INDEX everbell_audit_at on everbell_audit (at, id);
CREATE INDEX everbell_audit_backfills on everbell_audit (at, id) where action = 'job.backfill';
CREATE INDEX everbell_audit_object on everbell_audit (object, at, id);
CREATE INDEX everbell_backfills_job on everbell_backfills (job_key, id);
CREATE INDEX everbell_backfills_open on everbell_backfills (updated_at, id) where is_open;
CREATE INDEX everbell_deliveries_ended on everbell_deliveries (ended_at) where ended_at is not null;
CREATE INDEX everbell_deliveries_pending on everbell_deliveries (next_attempt_at, id) where status = 'pending';
CREATE INDEX everbell_deliveries_problem on everbell_deliveries (problem_id, id) where problem_id is not null;
CREATE INDEX everbell_freezes_end on everbell_freezes (ends_at, id);
CREATE INDEX everbell_gaps_first on everbell_gaps (first_slot_at, id);
CREATE INDEX everbell_gaps_job on everbell_gaps (job_id, first_slot_at, id);
CREATE INDEX everbell_inbox_answered on everbell_inbox (answered_at) where answered_at is not null;
CREATE INDEX everbell_inbox_job on everbell_inbox (substr(coalesce(job_key, key), 1, 200)) where answered_at is not null;
CREATE INDEX everbell_inbox_open on everbell_inbox (id) where answered_at is null;
CREATE TRIGGER everbell_inbox_moved before insert on everbell_inbox when exists (select 1 from everbell_moves) begin
  select raise(abort, 'this database was copied to another one, or a copy did not finish: see `everbell db status`');
end;
CREATE TRIGGER everbell_instances_moved before insert on everbell_instances when exists (select 1 from everbell_moves) begin
  select raise(abort, 'this database was copied to another one, or a copy did not finish: see `everbell db status`');
end;
CREATE VIEW everbell_job_rows as
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
CREATE INDEX everbell_jobs_after on everbell_jobs (after_key) where after_key is not null;
CREATE INDEX everbell_jobs_failing on everbell_jobs (id) where consecutive_failures > 0;
CREATE INDEX everbell_jobs_finished on everbell_jobs (updated_at, id) where status = 'retired' and schedule_type = 'one_time';
CREATE UNIQUE INDEX everbell_jobs_living on everbell_jobs (job_key) where status <> 'retired';
CREATE INDEX everbell_jobs_paused_until on everbell_jobs (paused_until) where paused_until is not null;
CREATE INDEX everbell_jobs_per_org on everbell_jobs (job_key) where scope = 'per_org' and status <> 'retired';
CREATE INDEX everbell_jobs_ranked on everbell_jobs (target) where status <> 'retired' and instr(policies, '"priority":') > 0;
CREATE INDEX everbell_jobs_supersedes on everbell_jobs (supersedes_job_id) where supersedes_job_id is not null;
CREATE INDEX everbell_jobs_target on everbell_jobs (target, status);
CREATE INDEX everbell_orgs_deleted on everbell_orgs (id) where deleted;
CREATE INDEX everbell_orgs_waiting on everbell_orgs (id) where waiting;
CREATE INDEX everbell_outcomes_bad on everbell_outcomes (run_id) where status <> 'succeeded';
CREATE INDEX everbell_outcomes_finished on everbell_outcomes (finished_at);
CREATE TRIGGER everbell_outcomes_end after insert on everbell_outcomes begin
  delete from everbell_active_runs where run_id = new.run_id;
end;
CREATE INDEX everbell_problems_closed on everbell_problems (closed_at) where closed_at is not null;
CREATE INDEX everbell_problems_job on everbell_problems (job_key, id);
CREATE UNIQUE INDEX everbell_problems_open on everbell_problems (kind, job_key, org_id) where closed_at is null;
CREATE INDEX everbell_requests_created on everbell_requests (created_at);
CREATE INDEX everbell_run_counters_job on everbell_run_counters (job_key, hour) where job_key <> '';
CREATE INDEX everbell_run_groups_closed on everbell_run_groups (closed_at) where closed_at is not null;
CREATE INDEX everbell_run_groups_open on everbell_run_groups (deadline) where closed_at is null;
CREATE INDEX everbell_run_groups_opened on everbell_run_groups (job_key, opened_at);
CREATE VIEW everbell_run_rows as
select r.id, r.job_id, j.job_key, j.version as job_version, r.org_id, r.local_date, r.target,
       coalesce(r.payload, j.payload, '{}') as payload,
       r.trigger, r.nonce = 0 as by_slot, r.at, r.scheduled_at, r.created_at,
       case when r.skip_reason is not null then 'skipped' else coalesce(a.status, o.status) end as status,
       r.skip_reason, r.skip_detail, coalesce(a.held, 0) as held, r.catch_up, r.folded,
       coalesce(a.attempt, o.attempt, 0) as attempt,
       coalesce(a.runner_id, o.runner_id) as runner_id,
       coalesce(a.claimed_at, o.claimed_at) as claimed_at,
       coalesce(a.started_at, o.started_at) as started_at,
       o.finished_at,
       case when a.lease_until is not null then
         max(a.lease_until, coalesce((select i.lease_until from everbell_instances i where i.id = a.runner_id), a.lease_until))
       end as lease_until,
       a.cancel_by,
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
CREATE INDEX everbell_runs_skipped on everbell_runs (id) where skip_reason is not null;
CREATE TRIGGER everbell_runs_active after insert on everbell_runs when new.skip_reason is null begin
  insert into everbell_active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at)
  values (new.id, new.job_id, new.org_id, new.target, 'pending', 0, 1, 0, new.scheduled_at);
end;
CREATE TRIGGER everbell_runs_gone after delete on everbell_runs begin
  delete from everbell_outcomes where run_id = old.id;
  update everbell_timers
  set (last_run_at, last_run_id) =
    (select r.at, r.id from everbell_runs r where r.job_id = everbell_timers.job_id and r.skip_reason is not 'operator'
     order by r.at desc, r.id desc limit 1)
  where org_id = '' and last_run_id = old.id
    and job_id in (select old.job_id union all
                   select v.id from everbell_jobs j join everbell_jobs v on v.job_key = j.job_key and v.status <> 'retired'
                   where j.id = old.job_id);
end;
CREATE INDEX everbell_sessions_expires on everbell_sessions (expires_at);
CREATE INDEX everbell_sessions_token on everbell_sessions (token_hash, created_at, id);
CREATE INDEX everbell_timers_due on everbell_timers (next_run_at) where next_run_at is not null;
CREATE INDEX everbell_timers_errored on everbell_timers (org_id) where error is not null;
CREATE INDEX everbell_timers_first_org on everbell_timers (job_id, next_run_at, org_id) where org_id <> '' and next_run_at is not null;
