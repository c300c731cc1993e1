-- Requests that others write inside of their own transactions. Nothing is decided here: an instance reads them, checks them as
-- the API would, and answers. `run_at` is a time in RFC 3339, such as 2027-01-31T08:00:00Z.
create table everbell_inbox (
  id          integer primary key autoincrement,
  target      text not null,
  payload     text,
  key         text,
  run_at      text,
  cron        text,
  timezone    text,
  -- the header that a program passes on with its request
  traceparent text,
  role        text,
  -- the answer
  answered_at integer,
  job_key     text,
  refusal     text,
  check (answered_at is not null or (job_key is null and refusal is null))
) strict;
create index everbell_inbox_open on everbell_inbox (id) where answered_at is null;
create index everbell_inbox_answered on everbell_inbox (answered_at) where answered_at is not null;
create index everbell_inbox_job on everbell_inbox (coalesce(job_key, key)) where answered_at is not null;
