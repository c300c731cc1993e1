-- Runs of backfills are beside the schedule: they wait for each other, and live slots neither wait for them nor are skipped.
alter table active_runs add column backfill boolean not null default false;
update active_runs a set backfill = true from runs r where r.id = a.run_id and r.trigger like 'backfill:%';

-- The first run that waits, of a job and org: found at once, however many of the other kind wait before it.
create index active_runs_held on active_runs (job_id, org_id, backfill, run_id) where held;
