-- Times in which no instance scheduled anything: from the last heartbeat before to the first one after.
create table absences (
  from_at  timestamptz primary key,
  until_at timestamptz not null check (until_at > from_at)
);
create index absences_until on absences (until_at);

-- The last heartbeat of the instances that are no longer known.
create table departures (
  id           integer primary key check (id = 1),
  heartbeat_at timestamptz not null
);

-- The gaps of all jobs, in the order of their list.
create index gaps_first on gaps (first_slot_at, id);

-- The backfills of all jobs, among all the entries of the audit trail.
create index audit_backfills on audit (at, id) where action = 'job.backfill';
