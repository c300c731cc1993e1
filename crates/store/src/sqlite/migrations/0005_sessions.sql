-- Who is signed in with a browser. The cookie holds a secret; this table holds its hash and that of the token.
create table sessions (
  id           blob primary key not null,
  hash         blob not null unique,
  token_hash   blob not null,
  actor        text not null,
  role         text not null,
  created_at   integer not null,
  expires_at   integer not null,
  last_used_at integer not null,
  address      text,
  user_agent   text
) strict;
create index sessions_token on sessions (token_hash, created_at, id);
create index sessions_expires on sessions (expires_at);

-- Where the request of an entry came from. What everbell does by itself has none of them.
alter table audit add column address text;
alter table audit add column request_id text;
alter table audit add column role text;
