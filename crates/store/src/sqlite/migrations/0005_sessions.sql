-- Who is signed in with a browser. The cookie holds a secret; this table holds its hash and that of the token.
create table everbell_sessions (
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
create index everbell_sessions_token on everbell_sessions (token_hash, created_at, id);
create index everbell_sessions_expires on everbell_sessions (expires_at);

-- Where the request of an entry came from. What everbell does by itself has none of them.
alter table everbell_audit add column address text;
alter table everbell_audit add column request_id text;
alter table everbell_audit add column role text;
