-- The next runs of a target and priority that may start. A held one only as the first held one of its job and org;
-- runs of backfills wait for each other, not for the schedule's. ?4 are the runs
-- and jobs that cannot be read, which must not stand in the way of the others; null when there are none. Without ?5 backfills are passed over.
select r.id, r.job_id, r.org_id, r.local_date, r.target, r.payload, r.trigger, r.nonce = 0 as by_slot,
       r.at, r.scheduled_at, r.created_at, r.catch_up, r.folded, p.attempt + 1 as attempt, p.cancel_by,
       p.earlier, r.trace_context, p.available_at
from everbell_active_runs p indexed by everbell_active_runs_pending
cross join everbell_runs r
where p.target = ?1 and p.priority = ?6 and p.status = 'pending' and p.available_at <= ?2 and not p.paused and r.id = p.run_id
  and (not p.held or (
    p.run_id = (select h.run_id from everbell_active_runs h
                where h.job_id = p.job_id and h.org_id = p.org_id and h.backfill = p.backfill and h.held order by h.run_id limit 1)
    and (select count(*) from everbell_active_runs n
         where n.job_id = p.job_id and n.org_id = p.org_id and n.backfill = p.backfill and not n.held) < p.max_concurrent
  ))
  and (?4 is null or (
    p.run_id not in (select unhex(value) from json_each(?4))
    and (p.job_id is null or p.job_id not in (select unhex(value) from json_each(?4)))
  ))
  and (?5 or not p.backfill)
order by p.available_at, p.run_id
limit ?3
