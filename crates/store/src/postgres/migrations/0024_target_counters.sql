-- Counters of recurring jobs know their target as well: a row for each target that a job had in an hour. Rows of earlier releases have
-- none.
alter table run_counters drop constraint run_counters_check;
alter table run_counters add constraint run_counters_owner check (target <> '' or job_key <> '');

-- Hours that were counted before are counted again from the runs that are still kept: the newest as if they had not been counted, the
-- others when it is their turn.
delete from counted_hours where hour > (select max(hour) from counted_hours) - interval '30 hours';
update counted_hours set counted_at = hour;
