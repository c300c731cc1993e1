-- Requests that others write inside of their own transactions. Nothing is decided here: an instance reads them, checks them as
-- the API would, and answers.
create table inbox (
  id          bigint generated always as identity primary key,
  target      text not null,
  payload     text,
  key         text,
  run_at      timestamptz check (isfinite(run_at)),
  cron        text,
  timezone    text,
  -- the header that a program passes on with its request
  traceparent text,
  role        text not null default current_user,
  -- the answer
  answered_at timestamptz,
  job_key     text,
  refusal     text,
  check (answered_at is not null or (job_key is null and refusal is null))
);
create index inbox_open on inbox (id) where answered_at is null;
create index inbox_answered on inbox (answered_at) where answered_at is not null;
create index inbox_job on inbox ((coalesce(job_key, key))) where answered_at is not null;

-- The search path of the migration, which is this schema alone, is that of the functions, whoever calls them.
create function tell_inbox() returns trigger language plpgsql set search_path from current as $$
begin
  perform pg_notify(left(case current_schema() when 'everbell' then 'everbell' else 'everbell:' || current_schema() end, 63), 'changes');
  return null;
end
$$;
create trigger inbox_told after insert on inbox for each statement execute function tell_inbox();

create function enqueue(target text, payload jsonb default '{}', run_at timestamptz default null, key text default null,
                        traceparent text default null)
returns bigint language sql set search_path from current as $$
  insert into inbox (target, payload, run_at, key, traceparent) values ($1, $2::text, $3, $4, $5) returning id
$$;

create function schedule(key text, cron text, target text, timezone text default 'UTC', payload jsonb default '{}')
returns bigint language sql set search_path from current as $$
  insert into inbox (key, cron, target, timezone, payload) values ($1, $2, $3, $4, $5::text) returning id
$$;
