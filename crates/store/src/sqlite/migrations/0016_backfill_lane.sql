-- Runs of backfills are beside the schedule: they wait for each other, and live slots neither wait for them nor are skipped.
alter table everbell_active_runs add column backfill integer not null default 0;
update everbell_active_runs set backfill = 1
where run_id in (select r.id from everbell_runs r where r.trigger like 'backfill:%' and r.id = everbell_active_runs.run_id);

-- The first run that waits, of a job and org: found at once, however many of the other kind wait before it.
create index everbell_active_runs_held on everbell_active_runs (job_id, org_id, backfill, run_id) where held;
