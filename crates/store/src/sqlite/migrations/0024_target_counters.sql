-- Counters of recurring jobs know their target as well: a row for each target that a job had in an hour. Rows of earlier releases have
-- none.
alter table everbell_run_counters rename to everbell_run_counters_before;
drop index everbell_run_counters_job;
create table everbell_run_counters (
  hour          integer not null,
  -- of a recurring job, all versions and orgs together; empty for all one-time jobs with this target
  job_key       text not null,
  -- empty for hours that an earlier release has counted
  target        text not null,
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
  check (target <> '' or job_key <> ''),
  primary key (hour, job_key, target)
) strict, without rowid;
insert into everbell_run_counters select * from everbell_run_counters_before;
drop table everbell_run_counters_before;
create index everbell_run_counters_job on everbell_run_counters (job_key, hour) where job_key <> '';

-- Hours that were counted before are counted again from the runs that are still kept: the newest as if they had not been counted, the
-- others when it is their turn.
delete from everbell_counted_hours where hour > (select max(hour) from everbell_counted_hours) - 108000000000;
update everbell_counted_hours set counted_at = hour;
