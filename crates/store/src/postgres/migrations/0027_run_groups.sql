-- Runs that a job which starts after several others waits for, as far as they have ended. Such a job has an empty `after_key`,
-- and the keys of the jobs before it on lines of their own in `cron_expression`, which begins with `@after-all`.
create table run_groups (
  -- the job that waits
  job_key   text not null,
  -- the slot or the local date that the runs have in common
  name      text not null,
  opened_at timestamptz not null,
  deadline  timestamptz not null,
  closed_at timestamptz,
  -- the run that the group started
  started   uuid,
  -- job, run, status, and whether it counts, in JSON
  runs      text not null,
  primary key (job_key, name)
);
create index run_groups_open on run_groups (deadline) where closed_at is null;
create index run_groups_closed on run_groups (closed_at) where closed_at is not null;
create index run_groups_opened on run_groups (job_key, opened_at);

-- One more reason. Rows that are there had one of the old ones, so they need no check.
alter table gaps drop constraint gaps_reason_check;
alter table gaps add constraint gaps_reason_check check (reason in ('missed', 'coalesced', 'paused', 'dst_gap', 'expired', 'errored', 'excluded', 'frozen', 'incomplete')) not valid;
