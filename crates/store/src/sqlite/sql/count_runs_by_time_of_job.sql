-- Each version by its index, which has the order of `at`.
select t.bucket, t.status,
       (t.lag >= ?4) + (t.lag >= ?5) + (t.lag >= ?6) + (t.lag >= ?7) + (t.lag >= ?8) + (t.lag >= ?9) + (t.lag >= ?10)
       + (t.lag >= ?11) + (t.lag >= ?12) + (t.lag >= ?13) + (t.lag >= ?14) + (t.lag >= ?15) as place,
       count(*) as runs, max(t.lag) as longest_lag, count(t.took) as timed, sum(t.took) as took, max(t.took) as longest
from (
  select b.key as bucket,
         case when r.skip_reason is not null then 'skipped' else coalesce(a.status, o.status) end as status,
         case when ?3 and r.trigger glob 'schedule:*' and coalesce(a.attempt, o.attempt) = 1
              then coalesce(a.started_at, o.started_at) - r.scheduled_at end as lag,
         case when ?3 then max(o.finished_at - o.started_at, 0) end as took
  from everbell_jobs j
  cross join json_each(?1) b
  cross join everbell_runs r
  left join everbell_active_runs a on a.run_id = r.id
  left join everbell_outcomes o on o.run_id = r.id
  where j.job_key = ?16 and r.job_id = j.id and r.at >= b.value ->> 0 and r.at < b.value ->> 1
    and (?2 is null or r.target = ?2)
) t
group by 1, 2, 3
