-- The next runs of a target and priority that may start and are not held. ?4 are the runs and jobs that cannot be read, which
-- must not stand in the way of the others; null when there are none. Without ?5 backfills are passed over.
select r.id, r.job_id, r.org_id, r.local_date, r.target, r.payload, r.trigger, r.nonce = 0 as by_slot,
       r.at, r.scheduled_at, r.created_at, r.catch_up, r.folded, p.attempt + 1 as attempt, p.cancel_by,
       p.earlier, r.trace_context, p.available_at, p.priority
from everbell_active_runs p indexed by everbell_active_runs_pending
cross join everbell_runs r
where p.target = ?1 and p.priority = ?6 and p.status = 'pending' and not p.held and not p.paused and p.available_at <= ?2
  and r.id = p.run_id
  and (?4 is null or (
    p.run_id not in (select unhex(value) from json_each(?4))
    and (p.job_id is null or p.job_id not in (select unhex(value) from json_each(?4)))
  ))
  and (?5 or not p.backfill)
order by p.available_at, p.run_id
limit ?3
