-- One row in a database whose rows were copied to another one, which goes on with its jobs: this one may not be started again, or
-- both would fire. Written by `everbell db copy`, deleted by `everbell db reopen`.
create table everbell_moves (
  id       integer primary key check (id = 1),
  -- 'begun' until the other database is known to have the rows
  state    text not null check (state in ('begun', 'done')),
  -- for people
  moved_to text not null,
  -- the same in one spelling, without user and password
  target   text not null,
  moved_at integer not null
) strict;

-- Requests of others would be lost here.
create trigger everbell_inbox_moved before insert on everbell_inbox when exists (select 1 from everbell_moves) begin
  select raise(abort, 'this database was copied to another one, or a copy did not finish: see `everbell db status`');
end;
create trigger everbell_instances_moved before insert on everbell_instances when exists (select 1 from everbell_moves) begin
  select raise(abort, 'this database was copied to another one, or a copy did not finish: see `everbell db status`');
end;
