-- One-time jobs that are over, oldest first, for prune_jobs.
create index everbell_jobs_finished on everbell_jobs (updated_at, id) where status = 'retired' and schedule_type = 'one_time';
-- The version that superseded another one: asked for whenever a job is deleted.
create index everbell_jobs_supersedes on everbell_jobs (supersedes_job_id) where supersedes_job_id is not null;
