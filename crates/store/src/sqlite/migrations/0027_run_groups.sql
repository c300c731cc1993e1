-- Runs that a job which starts after several others waits for, as far as they have ended. Such a job has an empty `after_key`,
-- and the keys of the jobs before it on lines of their own in `cron_expression`, which begins with `@after-all`.
create table everbell_run_groups (
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
create index everbell_run_groups_open on everbell_run_groups (deadline) where closed_at is null;
create index everbell_run_groups_closed on everbell_run_groups (closed_at) where closed_at is not null;
create index everbell_run_groups_opened on everbell_run_groups (job_key, opened_at);

-- One more reason. A check cannot be changed, so the table is made again.
create table everbell_gaps_27 (
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
insert into everbell_gaps_27 (id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, created_at)
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor, created_at from everbell_gaps;
drop table everbell_gaps;
alter table everbell_gaps_27 rename to everbell_gaps;
create index everbell_gaps_first on everbell_gaps (first_slot_at, id);
create index everbell_gaps_job on everbell_gaps (job_id, first_slot_at, id);
