-- Problems of jobs, and the outbox of messages about them. Nothing is decided here: see `alert` in the core.
create table everbell_problems (
  id        blob primary key not null,
  kind      text not null,
  job_key   text not null,
  opened_at integer not null,
  closed_at integer,
  -- in JSON: cause, rules that were told, acknowledgement, mute
  state     text not null,
  check (closed_at >= opened_at)
) strict;
-- A problem never opens twice without a close.
create unique index everbell_problems_open on everbell_problems (kind, job_key) where closed_at is null;
create index everbell_problems_closed on everbell_problems (closed_at) where closed_at is not null;
create index everbell_problems_job on everbell_problems (job_key, id);

create table everbell_deliveries (
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
create index everbell_deliveries_pending on everbell_deliveries (next_attempt_at, id) where status = 'pending';
create index everbell_deliveries_problem on everbell_deliveries (problem_id, id) where problem_id is not null;
create index everbell_deliveries_ended on everbell_deliveries (ended_at) where ended_at is not null;

-- One row. Its generation grows with each decision and each action of an operator, so that of two instances which decide at
-- once one writes.
create table everbell_alert_state (
  id         integer primary key check (id = 1),
  generation integer not null,
  looked_at  integer
) strict;
insert into everbell_alert_state (id, generation) values (1, 0);
