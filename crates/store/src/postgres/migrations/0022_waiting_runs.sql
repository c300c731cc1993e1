-- A claim does not walk over runs that cannot start: those that are held back or paused are in none of the indexes of runs that
-- may start, and the next held run of each job and org is found by one step on an index.
drop index active_runs_target;
create index active_runs_target on active_runs (target, available_at, run_id) where priority = 0 and not held and not paused;
drop index active_runs_urgent;
create index active_runs_urgent on active_runs (target, priority desc, available_at, run_id)
  where priority > 0 and not held and not paused;
drop index active_runs_patient;
create index active_runs_patient on active_runs (target, priority desc, available_at, run_id)
  where priority < 0 and not held and not paused;
create index active_runs_waiting on active_runs (target, priority desc, available_at, run_id) where held and not paused;

-- How many runs of a job and org are not held, without reading those that are.
drop index active_runs_job;
create index active_runs_job on active_runs (job_id, org_id, held);
