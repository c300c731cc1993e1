-- Problems of the runs of a job for one org; empty for all orgs.
alter table everbell_problems add column org_id text not null default '';
drop index everbell_problems_open;
create unique index everbell_problems_open on everbell_problems (kind, job_key, org_id) where closed_at is null;
