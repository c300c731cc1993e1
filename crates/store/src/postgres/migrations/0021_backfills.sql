-- Backfills of any length: a row with a cursor each, whose runs are created in chunks. Backfills from before have no row here:
-- their runs are all there already.
create table backfills (
  id           uuid primary key,
  revision     bigint not null check (revision > 0),
  job_key      text not null,
  -- empty for none
  org_id       text not null,
  requested_at timestamptz not null,
  requested_by text not null,
  reason       text,
  from_at      timestamptz not null,
  to_at        timestamptz not null,
  status       text not null check (status in ('running', 'paused', 'stopped', 'done')),
  -- whether it creates runs, or some of its runs are still to be counted
  is_open      boolean not null,
  -- whether it goes on while its job is paused
  paused_ok    boolean not null,
  -- the trigger of its runs
  run_trigger  text not null,
  -- settings, cursor, runs that are not counted yet, and counts, as JSON
  progress     text not null,
  updated_at   timestamptz not null
);
create index backfills_job on backfills (job_key, id);
create index backfills_open on backfills (updated_at, id) where is_open;
