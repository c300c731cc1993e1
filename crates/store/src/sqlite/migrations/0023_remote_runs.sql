-- A run that was handed over to its remote side is leased to the nil UUID, which is no instance. These columns are of the last
-- hand-over: they mean nothing while an instance holds the run. In milliseconds; progress in thousandths.
alter table everbell_active_runs add column remote_lease integer;
alter table everbell_active_runs add column remote_deadline integer;
alter table everbell_active_runs add column progress integer;
alter table everbell_active_runs add column progress_message text;
create index everbell_active_runs_remote on everbell_active_runs (run_id) where remote_lease is not null;

-- Keys that all instances share.
create table everbell_secrets (
  name  text primary key not null,
  value blob not null
) strict;
