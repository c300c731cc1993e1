-- Counters of runs by hour and job. Nothing is counted here: instances count whole hours later, the newest first.
create table everbell_run_counters (
  hour          integer not null,
  -- of a recurring job, all versions and orgs together; else empty
  job_key       text not null,
  -- of one-time jobs, all with this target together; else empty
  target        text not null check ((target = '') <> (job_key = '')),
  succeeded     integer not null,
  failed        integer not null,
  canceled      integer not null,
  skipped       integer not null,
  -- microseconds
  took_runs     integer not null,
  took_total    integer not null,
  took_longest  integer not null,
  delay_runs    integer not null,
  delay_total   integer not null,
  delay_longest integer not null,
  -- histograms: bucket:runs, separated by spaces
  took_places   text not null,
  delay_places  text not null,
  -- failure code:runs, separated by spaces
  failures      text not null,
  primary key (hour, job_key, target)
) strict, without rowid;
create index everbell_run_counters_job on everbell_run_counters (job_key, hour) where job_key <> '';

create table everbell_counted_hours (
  hour       integer primary key not null,
  counted_at integer not null
) strict;

-- Runs that ended in an hour.
create index everbell_outcomes_finished on everbell_outcomes (finished_at);
