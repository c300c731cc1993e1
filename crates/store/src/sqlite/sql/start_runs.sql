-- One look at the index for each target, of as many runs as may start in all, then as many of each as it has room for.
-- Runs and jobs that cannot be read (?6) are passed over. Who may start is judged before anybody does, so one call takes at most one held run of a job and org.
with wanted as materialized (
  select value ->> 0 as target, value ->> 1 as room from json_each(?1)
), waiting as materialized (
  select a.run_id, a.available_at, row_number() over (partition by a.target order by a.available_at, a.run_id) as place,
         w.room
  from wanted w cross join active_runs a
  where a.run_id in (
    select p.run_id from active_runs p indexed by active_runs_pending
    where p.target = w.target and p.status = 'pending' and p.available_at <= ?3
      and p.run_id not in (select unhex(value) from json_each(?6))
      and (p.job_id is null or p.job_id not in (select unhex(value) from json_each(?6)))
      and (not p.held or (
        p.run_id = (select h.run_id from active_runs h
                    where h.job_id = p.job_id and h.org_id = p.org_id and h.held order by h.run_id limit 1)
        and (select count(*) from active_runs n
             where n.job_id = p.job_id and n.org_id = p.org_id and not n.held) < p.max_concurrent
      ))
    order by p.available_at, p.run_id
    limit ?2
  )
)
update active_runs
set status = 'running', held = 0, attempt = attempt + 1, runner_id = ?4, claimed_at = ?3, started_at = ?3,
    lease_until = ?5, failure_code = null, failure_message = null, failure_details = null
where run_id in (select run_id from waiting where place <= room order by available_at, run_id limit ?2)
returning run_id, job_id
