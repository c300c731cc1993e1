-- Jobs whose last run may stand as asked, if that is not `succeeded`: those with a run at work, and those with a last run
-- in whose millisecond some run went wrong. Ids begin with their time, so the small indexes of what went wrong tell this
-- from the time alone, which the index of the history has; the id of each last run would cost as much again.
select a.job_id from active_runs a where a.job_id is not null and a.status in (select value from json_each(?2))
union all
select l.id from (
  select j.id, max((select r.at from runs r where r.job_id = j.id order by r.at desc limit 1) / 1000, 0) as ms from jobs j
  where (instr(?2, 'failed') or instr(?2, 'canceled') or instr(?2, 'skipped'))
    and (?1 is null or j.status in (select value from json_each(?1)))
  limit -1
) l
where (instr(?2, 'failed') or instr(?2, 'canceled')) and exists (
    select 1 from outcomes o indexed by outcomes_bad
    where o.status <> 'succeeded' and o.run_id >= unhex(printf('%012x', l.ms)) and o.run_id < unhex(printf('%012x', l.ms + 1)))
  or instr(?2, 'skipped') and exists (
    select 1 from runs k indexed by runs_skipped
    where k.skip_reason is not null and k.id >= unhex(printf('%012x', l.ms)) and k.id < unhex(printf('%012x', l.ms + 1)))
