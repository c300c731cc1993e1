-- Outcomes by their end, skipped runs by the slot that their id begins with: each on its index.
select t.job_key, t.target, t.status, t.failure_code, width_bucket(t.took, $6::bigint[]) as took_place,
       width_bucket(t.delay, $6::bigint[]) as delay_place, count(*) as runs,
       sum(t.took)::bigint as took, max(t.took) as longest_took,
       sum(t.delay)::bigint as delay, max(t.delay) as longest_delay
from (
  select case j.schedule_type when 'recurring' then j.job_key else '' end as job_key,
         r.target,
         o.status, o.failure_code,
         -- `greatest` would take the other value for an attempt that never started
         case when o.started_at is not null
              then (extract(epoch from greatest(o.finished_at - o.started_at, interval '0')) * 1000000)::bigint end as took,
         case when r.trigger like 'schedule:%' and o.attempt = 1 and o.started_at is not null
              then (extract(epoch from greatest(o.started_at - r.scheduled_at, interval '0')) * 1000000)::bigint end as delay
  from everbell.outcomes o
  -- One look-up for each outcome, however large the table of runs is: `offset 0` keeps the planner from reading all of it.
  cross join lateral (select job_id, target, trigger, scheduled_at from everbell.runs where id = o.run_id offset 0) r
  join everbell.jobs j on j.id = r.job_id
  where o.finished_at >= $1 and o.finished_at < $2
    and ($5::text is null or (j.job_key = $5 and j.schedule_type = 'recurring'))
  union all
  select case j.schedule_type when 'recurring' then j.job_key else '' end,
         r.target,
         'skipped', null, null::bigint, null::bigint
  from everbell.runs r
  join everbell.jobs j on j.id = r.job_id
  where r.skip_reason is not null and r.id >= $3 and r.id < $4
    and ($5 is null or (j.job_key = $5 and j.schedule_type = 'recurring'))
) t
group by 1, 2, 3, 4, 5, 6
