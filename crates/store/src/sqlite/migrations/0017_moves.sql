-- One row in a database whose rows were copied to another one, which goes on with its jobs: this one may not be started again, or
-- both would fire. Written by `everbell db copy`, deleted by `everbell db reopen`.
create table everbell_moves (
  id       integer primary key check (id = 1),
  moved_to text not null,
  moved_at integer not null
) strict;
