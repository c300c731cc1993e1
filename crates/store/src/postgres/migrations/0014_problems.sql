-- Problems of jobs, and the outbox of messages about them. Nothing is decided here: see `alert` in the core.
create table problems (
  id        uuid primary key,
  kind      text not null,
  job_key   text not null,
  opened_at timestamptz not null,
  closed_at timestamptz,
  -- in JSON: cause, rules that were told, acknowledgement, mute
  state     text not null,
  check (closed_at >= opened_at)
);
-- A problem never opens twice without a close.
create unique index problems_open on problems (kind, job_key) where closed_at is null;
create index problems_closed on problems (closed_at) where closed_at is not null;
create index problems_job on problems (job_key, id);

create table deliveries (
  id              uuid primary key,
  problem_id      uuid,
  rule            text,
  channel         text not null,
  change          text not null,
  message         text not null,
  created_at      timestamptz not null,
  available_at    timestamptz not null,
  status          text not null check (status in ('pending', 'delivered', 'dead')),
  attempt         bigint not null check (attempt >= 0),
  next_attempt_at timestamptz not null,
  lease_until     timestamptz,
  error           text,
  ended_at        timestamptz,
  check ((status = 'pending') = (ended_at is null)),
  check ((problem_id is null) = (rule is null))
);
create index deliveries_pending on deliveries (next_attempt_at, id) where status = 'pending';
create index deliveries_problem on deliveries (problem_id, id) where problem_id is not null;
create index deliveries_ended on deliveries (ended_at) where ended_at is not null;

-- One row. Its generation grows with each decision and each action of an operator, so that of two instances which decide at
-- once one writes.
create table alert_state (
  id         integer primary key check (id = 1),
  generation bigint not null,
  looked_at  timestamptz
);
insert into alert_state (id, generation) values (1, 0);
