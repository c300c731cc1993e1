-- Nobody else writes after `begin immediate`, so reading is locking. The index ends in the primary key, so it has the
-- whole order and the limit ends the scan. Jobs with a priority are found in an index that has only these; `policies` names
-- what differs from the usual.
with ranked (any_is) as materialized (
  select exists (
    select 1 from everbell_jobs indexed by everbell_jobs_ranked
    where target in (select value from json_each(?2)) and status <> 'retired' and instr(policies, '"priority":') > 0
  )
)
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date, (select any_is from ranked) as by_priority
from everbell_timers indexed by everbell_timers_due
where next_run_at <= ?1 and target in (select value from json_each(?2))
order by next_run_at, job_id, org_id
limit case when (select any_is from ranked) then ?4 else ?3 end
