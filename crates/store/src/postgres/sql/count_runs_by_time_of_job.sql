-- Each version by its index, which has the order of `at`.
select t.bucket, t.status, width_bucket(t.lag, $6::interval[]) as place, count(*) as runs,
       (extract(epoch from max(t.lag)) * 1000000)::bigint as longest_lag,
       count(t.took) as timed, (extract(epoch from sum(t.took)) * 1000000)::bigint as took,
       (extract(epoch from max(t.took)) * 1000000)::bigint as longest
from (
  select width_bucket(r.at, $1::timestamptz[]) - 1 as bucket,
         case when r.skip_reason is not null then 'skipped' else coalesce(a.status, o.status) end as status,
         case when $5::boolean and r.trigger like 'schedule:%' and coalesce(a.attempt, o.attempt) = 1
              then coalesce(a.started_at, o.started_at) - r.scheduled_at end as lag,
         case when $5 and o.started_at is not null
              then greatest(o.finished_at - o.started_at, interval '0') end as took
  from everbell.jobs j
  join everbell.runs r on r.job_id = j.id
  left join everbell.active_runs a on a.run_id = r.id
  left join everbell.outcomes o on o.run_id = r.id
  where j.job_key = $7 and r.at >= $2 and r.at < $3 and ($4::text is null or r.target = $4)
) t
group by 1, 2, 3
