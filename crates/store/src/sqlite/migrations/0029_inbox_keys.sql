-- Plain SQL may write a key of any length: it is refused where the request is read. The index needs no more of it than
-- names of jobs have.
drop index everbell_inbox_job;
create index everbell_inbox_job on everbell_inbox (substr(coalesce(job_key, key), 1, 200)) where answered_at is not null;
