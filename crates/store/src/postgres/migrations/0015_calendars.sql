-- Calendars: named sets of days. The days that a job follows are a part of its definition, so nothing joins this table.
create table calendars (
  name            text primary key,
  version         bigint not null check (version >= 1),
  -- the version that every job has: lower while an edit reaches them
  applied_version bigint not null check (applied_version <= version),
  -- in JSON: timezone, dates, weekly
  content         text not null,
  source          text not null check (source in ('api', 'config', 'code')),
  updated_by      text not null,
  created_at      timestamptz not null,
  updated_at      timestamptz not null
);

-- Freezes: times in which schedules do not fire.
create table freezes (
  id         uuid primary key,
  starts_at  timestamptz not null,
  ends_at    timestamptz not null check (ends_at > starts_at),
  reason     text not null,
  -- in JSON: label, except
  scope      text not null,
  created_by text not null,
  created_at timestamptz not null,
  -- ended early, by whom
  ended_at   timestamptz,
  ended_by   text,
  check ((ended_at is null) = (ended_by is null))
);
create index freezes_end on freezes (ends_at, id);

-- Two more reasons. Rows that are there had one of the old ones, so they need no check.
alter table gaps drop constraint gaps_reason_check;
alter table gaps add constraint gaps_reason_check check (reason in ('missed', 'coalesced', 'paused', 'dst_gap', 'expired', 'errored', 'excluded', 'frozen')) not valid;
