-- Gaps that reach into the absence, and runs of its slots: both written at its end. Runs go by their ids, which begin with the
-- time. A run that slots were folded into is planned a little later, so its own slot may be after the absence.
select j.job_key, l.outcome, sum(l.slots)::bigint as slots, min(l.first_at) as first_slot_at, max(l.last_at) as last_slot_at
from (
  select g.job_id, g.reason as outcome, g.slots, g.first_slot_at as first_at, g.last_slot_at as last_at
  from everbell.gaps g
  where g.first_slot_at >= $7 and g.first_slot_at < $2 and g.last_slot_at >= $1 and g.created_at >= $3 and g.created_at < $8
    and g.reason in ('missed', 'coalesced', 'expired')
  union all
  select r.job_id,
         case when r.trigger like 'backfill:%' then 'backfilled' when r.skip_reason is not null then 'skipped' else 'ran' end,
         1, r.at, r.at
  from everbell.runs r
  where r.id >= $4 and r.id < $5 and r.at >= $1 and r.created_at >= $3 and r.created_at < $8 and r.nonce = 0
    and (r.at < $2 or (r.folded > 0 and r.at < $9))
    and not (r.trigger like 'backfill:%'
      and exists (select 1 from everbell.outcomes o where o.run_id = r.id and o.status = 'canceled'))
) l join everbell.jobs j on j.id = l.job_id
group by j.job_key, l.outcome
order by j.job_key collate "C", l.outcome collate "C" limit $6
