-- Gaps that begin in the absence, and runs of its slots: both written after it. Runs go by their ids, which begin with the time.
select j.job_key, l.outcome, sum(l.slots) as slots, min(l.first_at) as first_slot_at, max(l.last_at) as last_slot_at
from (
  select g.job_id, g.reason as outcome, g.slots, g.first_slot_at as first_at, g.last_slot_at as last_at
  from everbell_gaps g
  where g.first_slot_at >= ?1 and g.first_slot_at < ?2 and g.created_at >= ?3
    and g.reason in ('missed', 'coalesced', 'expired')
  union all
  select r.job_id,
         case when r.trigger like 'backfill:%' then 'backfilled' when r.skip_reason is not null then 'skipped' else 'ran' end,
         1, r.at, r.at
  from everbell_runs r
  where r.id >= ?4 and r.id < ?5 and r.at >= ?1 and r.at < ?2 and r.created_at >= ?3 and r.nonce = 0
) l join everbell_jobs j on j.id = l.job_id
group by j.job_key, l.outcome
order by j.job_key, l.outcome limit ?6
