-- Targets that admins define. Their secrets are elsewhere: a definition says where each instance finds them.
create table targets (
  label      text primary key,
  revision   bigint not null check (revision >= 1),
  -- the members of a block, in JSON
  definition text not null,
  updated_by text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
