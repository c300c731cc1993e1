-- Problems of the runs of a job for one org; empty for all orgs.
alter table problems add column org_id text not null default '';
drop index problems_open;
create unique index problems_open on problems (kind, job_key, org_id) where closed_at is null;
