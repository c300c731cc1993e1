-- Backfills of any length: a row with a cursor each, whose runs are created in chunks. Backfills from before have no row here:
-- their runs are all there already.
create table everbell_backfills (
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
create index everbell_backfills_job on everbell_backfills (job_key, id);
create index everbell_backfills_open on everbell_backfills (updated_at, id) where is_open;
