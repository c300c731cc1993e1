-- Of runs that wait, those of a higher priority start first.
alter table everbell_active_runs add column priority integer not null default 0;
drop index everbell_active_runs_pending;
create index everbell_active_runs_pending on everbell_active_runs (target, priority, available_at) where status = 'pending';
