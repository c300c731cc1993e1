-- A run that was handed over to its remote side is leased to the nil UUID, which is no instance. These columns are of the last
-- hand-over: they mean nothing while an instance holds the run. In milliseconds; progress in thousandths.
alter table active_runs add column remote_lease bigint;
alter table active_runs add column remote_deadline timestamptz;
alter table active_runs add column progress integer;
alter table active_runs add column progress_message text;
-- Of no column that a start changes: that must stay a HOT update.
create index active_runs_remote on active_runs (run_id) where remote_lease is not null;

-- Keys that all instances share.
create table secrets (
  name  text primary key,
  value bytea not null
);
