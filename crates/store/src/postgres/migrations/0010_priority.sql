-- Of runs that wait, those of a higher priority start first. Most have none, and are in neither of these indexes. Their
-- predicates name no column that changes, so that starting a run stays cheap (HOT).
alter table active_runs add column priority integer not null default 0;
create index active_runs_urgent on active_runs (target, priority desc, available_at, run_id) where priority > 0;
create index active_runs_patient on active_runs (target, priority desc, available_at, run_id) where priority < 0;
