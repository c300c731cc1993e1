-- From indexes alone: what ended and is not among the few that did not succeed has succeeded.
with ended as (
  select width_bucket(run_id, $1::uuid[]) - 1 as bucket, count(*) as runs from everbell.outcomes
  where run_id >= $2 and run_id < $3
  group by 1
), bad as (
  select width_bucket(run_id, $1::uuid[]) - 1 as bucket, status, count(*) as runs from everbell.outcomes
  where status <> 'succeeded' and run_id >= $2 and run_id < $3
  group by 1, 2
)
select e.bucket, 'succeeded' as status, e.runs - coalesce(sum(b.runs), 0)::bigint as runs
from ended e left join bad b on b.bucket = e.bucket
group by e.bucket, e.runs
union all
select bucket, status, runs from bad
union all
select width_bucket(id, $1::uuid[]) - 1, 'skipped', count(*) from everbell.runs
where skip_reason is not null and id >= $2 and id < $3
group by 1
union all
select width_bucket(run_id, $1::uuid[]) - 1, status, count(*) from everbell.active_runs
where run_id >= $2 and run_id < $3
group by 1, 2
