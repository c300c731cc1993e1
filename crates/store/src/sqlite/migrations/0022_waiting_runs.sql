-- A claim does not walk over runs that cannot start: those that are held back or paused are not in the index of runs that may
-- start, and the next held run of each job and org is found by one step on an index.
drop index everbell_active_runs_pending;
create index everbell_active_runs_pending on everbell_active_runs (target, priority, available_at)
  where status = 'pending' and not held and not paused;
create index everbell_active_runs_waiting on everbell_active_runs (target, priority desc, available_at)
  where held and not paused;

-- How many runs of a job and org are not held, without reading those that are.
drop index everbell_active_runs_job;
create index everbell_active_runs_job on everbell_active_runs (job_id, org_id, held);
