-- Counters of runs by hour and job. Nothing is counted here: instances count whole hours later, the newest first.
create table run_counters (
  hour          timestamptz not null,
  -- of a recurring job, all versions and orgs together; else empty
  job_key       text not null,
  -- of one-time jobs, all with this target together; else empty
  target        text not null check ((target = '') <> (job_key = '')),
  succeeded     bigint not null,
  failed        bigint not null,
  canceled      bigint not null,
  skipped       bigint not null,
  -- microseconds
  took_runs     bigint not null,
  took_total    bigint not null,
  took_longest  bigint not null,
  delay_runs    bigint not null,
  delay_total   bigint not null,
  delay_longest bigint not null,
  -- histograms: bucket:runs, separated by spaces
  took_places   text not null,
  delay_places  text not null,
  -- failure code:runs, separated by spaces
  failures      text not null,
  primary key (hour, job_key, target)
);
create index run_counters_job on run_counters (job_key, hour) where job_key <> '';

create table counted_hours (
  hour       timestamptz primary key,
  counted_at timestamptz not null
);

-- Runs that ended in an hour.
create index outcomes_finished on outcomes (finished_at);
