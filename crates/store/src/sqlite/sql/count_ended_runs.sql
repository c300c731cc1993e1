-- Outcomes by their end, skipped runs by the slot that their id begins with: each on its index. The code of a time is its power
-- of ten in milliseconds and its first three digits, and a bucket is one of ten steps of a power.
select g.job_key, g.target, g.status, g.failure_code,
       case when g.took_code = 0 then 0 else g.took_code / 10000 * 10 + 1
         + (g.took_code % 10000 >= 125) + (g.took_code % 10000 >= 160) + (g.took_code % 10000 >= 200) + (g.took_code % 10000 >= 250) + (g.took_code % 10000 >= 320)
         + (g.took_code % 10000 >= 400) + (g.took_code % 10000 >= 500) + (g.took_code % 10000 >= 630) + (g.took_code % 10000 >= 800) end as took_place,
       case when g.delay_code = 0 then 0 else g.delay_code / 10000 * 10 + 1
         + (g.delay_code % 10000 >= 125) + (g.delay_code % 10000 >= 160) + (g.delay_code % 10000 >= 200) + (g.delay_code % 10000 >= 250) + (g.delay_code % 10000 >= 320)
         + (g.delay_code % 10000 >= 400) + (g.delay_code % 10000 >= 500) + (g.delay_code % 10000 >= 630) + (g.delay_code % 10000 >= 800) end as delay_place,
       count(*) as runs, sum(g.took) as took, max(g.took) as longest_took,
       sum(g.delay) as delay, max(g.delay) as longest_delay
from (
  select t.job_key, t.target, t.status, t.failure_code, t.took, t.delay,
         case when t.took < 1000 then 0 when t.took < 10000 then t.took / 10 when t.took < 100000 then 10000 + t.took / 100 when t.took < 1000000 then 20000 + t.took / 1000
                when t.took < 10000000 then 30000 + t.took / 10000 when t.took < 100000000 then 40000 + t.took / 100000 when t.took < 1000000000 then 50000 + t.took / 1000000
                when t.took < 10000000000 then 60000 + t.took / 10000000 when t.took < 100000000000 then 70000 + t.took / 100000000 when t.took < 1000000000000 then 80000 + t.took / 1000000000
                when t.took is not null then 90100 end as took_code,
         case when t.delay < 1000 then 0 when t.delay < 10000 then t.delay / 10 when t.delay < 100000 then 10000 + t.delay / 100 when t.delay < 1000000 then 20000 + t.delay / 1000
                when t.delay < 10000000 then 30000 + t.delay / 10000 when t.delay < 100000000 then 40000 + t.delay / 100000 when t.delay < 1000000000 then 50000 + t.delay / 1000000
                when t.delay < 10000000000 then 60000 + t.delay / 10000000 when t.delay < 100000000000 then 70000 + t.delay / 100000000 when t.delay < 1000000000000 then 80000 + t.delay / 1000000000
                when t.delay is not null then 90100 end as delay_code
  from (
    select case j.schedule_type when 'recurring' then j.job_key else '' end as job_key,
           r.target,
           o.status, o.failure_code,
           max(o.finished_at - o.started_at, 0) as took,
           case when r.trigger glob 'schedule:*' and o.attempt = 1 then max(o.started_at - r.scheduled_at, 0) end as delay
    from everbell_outcomes o indexed by everbell_outcomes_finished
    cross join everbell_runs r on r.id = o.run_id
    cross join everbell_jobs j on j.id = r.job_id
    where o.finished_at >= ?1 and o.finished_at < ?2
      and (?5 is null or (j.job_key = ?5 and j.schedule_type = 'recurring'))
    union all
    select case j.schedule_type when 'recurring' then j.job_key else '' end,
           r.target,
           'skipped', null, null, null
    from everbell_runs r indexed by everbell_runs_skipped
    cross join everbell_jobs j on j.id = r.job_id
    where r.skip_reason is not null and r.id >= ?3 and r.id < ?4
      and (?5 is null or (j.job_key = ?5 and j.schedule_type = 'recurring'))
  ) t
) g
group by 1, 2, 3, 4, 5, 6
