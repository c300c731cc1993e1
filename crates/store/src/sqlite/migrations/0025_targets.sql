-- Targets that admins define. Their secrets are elsewhere: a definition says where each instance finds them.
create table everbell_targets (
  label      text primary key not null,
  revision   integer not null check (revision >= 1),
  -- the members of a block, in JSON
  definition text not null,
  updated_by text not null,
  created_at integer not null,
  updated_at integer not null
) strict;
