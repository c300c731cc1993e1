-- Nobody else writes after `begin immediate`, so reading is locking. The index ends in the primary key, so it has the
-- whole order and the limit ends the scan.
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
from everbell_timers indexed by everbell_timers_due
where next_run_at <= ?1 and target in (select value from json_each(?2))
order by next_run_at, job_id, org_id
limit ?3
