-- Who is signed in with a browser. The cookie holds a secret; this table holds its hash and that of the token.
create table sessions (
  id           uuid primary key,
  hash         bytea not null unique,
  token_hash   bytea not null,
  actor        text not null,
  role         text not null,
  created_at   timestamptz not null,
  expires_at   timestamptz not null,
  last_used_at timestamptz not null,
  address      text,
  user_agent   text
);
create index sessions_token on sessions (token_hash, created_at, id);
create index sessions_expires on sessions (expires_at);

-- Where the request of an entry came from. What everbell does by itself has none of them.
alter table audit add column address text;
alter table audit add column request_id text;
alter table audit add column role text;
