-- From indexes where they tell: of all runs of the job, what is not among the few others has succeeded.
with every as (
  select width_bucket(at, $1::timestamptz[]) - 1 as bucket, count(*) as runs from everbell.runs
  where job_id = any($6::uuid[]) and at >= $2 and at < $3
  group by 1
), others as (
  select width_bucket(at, $1::timestamptz[]) - 1 as bucket, status, count(*) as runs from (
    select r.at, o.status from everbell.outcomes o join everbell.runs r on r.id = o.run_id
    where o.status <> 'succeeded' and o.run_id >= $4 and o.run_id < $5
      and r.job_id = any($6::uuid[]) and r.at >= $2 and r.at < $3
    union all
    select at, 'skipped' from everbell.runs
    where skip_reason is not null and id >= $4 and id < $5 and job_id = any($6::uuid[]) and at >= $2 and at < $3
    union all
    select r.at, a.status from everbell.active_runs a join everbell.runs r on r.id = a.run_id
    where a.job_id = any($6::uuid[]) and r.at >= $2 and r.at < $3
  ) t
  group by 1, 2
)
select e.bucket, 'succeeded' as status, e.runs - coalesce(sum(o.runs), 0)::bigint as runs
from every e left join others o on o.bucket = e.bucket
group by e.bucket, e.runs
union all
select bucket, status, runs from others
