-- The held runs of a target whose turn it is: the first one of each job and org, where fewer others than allowed are active.
-- Runs of backfills wait for each other, not for the schedule's. From one job and org to the next is one step on the index,
-- however many runs wait there. ?4 and ?5 are as in waiting_runs.
with recursive heads (run_id) as (
  select (select run_id from everbell_active_runs indexed by everbell_active_runs_held
          where held and job_id >= x'' order by job_id, org_id, backfill, run_id limit 1)
  union all
  select coalesce(
    (select n.run_id from everbell_active_runs n indexed by everbell_active_runs_held
     where n.held and n.job_id = a.job_id and n.org_id = a.org_id and n.backfill > a.backfill
     order by n.backfill, n.run_id limit 1),
    (select n.run_id from everbell_active_runs n indexed by everbell_active_runs_held
     where n.held and n.job_id = a.job_id and n.org_id > a.org_id
     order by n.org_id, n.backfill, n.run_id limit 1),
    (select n.run_id from everbell_active_runs n indexed by everbell_active_runs_held
     where n.held and n.job_id > a.job_id
     order by n.job_id, n.org_id, n.backfill, n.run_id limit 1)
  )
  from heads h cross join everbell_active_runs a
  where a.run_id = h.run_id
)
select r.id, r.job_id, r.org_id, r.local_date, r.target, r.payload, r.trigger, r.nonce = 0 as by_slot,
       r.at, r.scheduled_at, r.created_at, r.catch_up, r.folded, p.attempt + 1 as attempt, p.cancel_by,
       p.earlier, r.trace_context, p.available_at, p.priority
-- Not as a join: that may build a filter of the whole table first.
from everbell_active_runs p
cross join everbell_runs r
where p.run_id in (select run_id from heads) and p.target = ?1 and p.available_at <= ?2 and not p.paused and r.id = p.run_id
  and (select count(*) from everbell_active_runs n indexed by everbell_active_runs_job
       where n.job_id = p.job_id and n.org_id = p.org_id and n.held = 0 and n.backfill = p.backfill) < p.max_concurrent
  and (?4 is null or (
    p.run_id not in (select unhex(value) from json_each(?4))
    and (p.job_id is null or p.job_id not in (select unhex(value) from json_each(?4)))
  ))
  and (?5 or not p.backfill)
order by p.priority desc, p.available_at, p.run_id
limit ?3
