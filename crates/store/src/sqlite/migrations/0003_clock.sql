-- One row: the last time that was trusted. History is not pruned by a clock that leapt ahead of it.
create table everbell_clock (
  id         integer primary key check (id = 1),
  trusted_at integer not null
) strict;
