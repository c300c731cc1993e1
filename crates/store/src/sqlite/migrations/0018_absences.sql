-- Times in which no instance scheduled anything: from the last heartbeat before to the first one after.
create table everbell_absences (
  from_at  integer primary key not null,
  until_at integer not null check (until_at > from_at)
) strict;
create index everbell_absences_until on everbell_absences (until_at);

-- The last heartbeat of the instances that are no longer known.
create table everbell_departures (
  id           integer primary key check (id = 1),
  heartbeat_at integer not null
) strict;

-- The backfills of all jobs, among all the entries of the audit trail.
create index everbell_audit_backfills on everbell_audit (at, id) where action = 'job.backfill';
