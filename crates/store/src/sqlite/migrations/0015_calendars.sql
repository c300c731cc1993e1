-- Calendars: named sets of days. The days that a job follows are a part of its definition, so nothing joins this table.
create table everbell_calendars (
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

-- Freezes: times in which schedules do not fire.
create table everbell_freezes (
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
create index everbell_freezes_end on everbell_freezes (ends_at, id);

-- Two more reasons. A check cannot be changed, so the table is made again.
create table everbell_gaps_15 (
  id            blob primary key not null,
  job_id        blob not null,
  org_id        text not null default '',
  first_slot_at integer not null,
  last_slot_at  integer not null check (last_slot_at >= first_slot_at),
  slots         integer not null check (slots >= 1),
  reason        text not null check (reason in ('missed', 'coalesced', 'paused', 'dst_gap', 'expired', 'errored', 'excluded', 'frozen')),
  actor         text,
  created_at    integer not null
) strict;
insert into everbell_gaps_15 (id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, created_at)
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, created_at from everbell_gaps;
drop table everbell_gaps;
alter table everbell_gaps_15 rename to everbell_gaps;
create index everbell_gaps_first on everbell_gaps (first_slot_at, id);
create index everbell_gaps_job on everbell_gaps (job_id, first_slot_at, id);
