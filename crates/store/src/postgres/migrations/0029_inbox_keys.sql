-- Plain SQL may write a key of any length: it is refused where the request is read. An entry of an index has a limit, so
-- that the answer could not be written; names of jobs end long before it.
drop index inbox_job;
create index inbox_job on inbox (left(coalesce(job_key, key), 200)) where answered_at is not null;

-- A schedule without a cron expression must not look like a request to enqueue: an empty one is refused where the request is read.
create or replace function schedule(key text, cron text, target text, timezone text default 'UTC', payload jsonb default '{}')
returns bigint language sql set search_path from current as $$
  insert into inbox (key, cron, target, timezone, payload) values ($1, coalesce($2, ''), $3, $4, $5::text) returning id
$$;
