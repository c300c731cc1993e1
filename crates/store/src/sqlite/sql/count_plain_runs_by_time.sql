-- From indexes alone: what ended and is not among the few that did not succeed has succeeded.
with spans as materialized (
  select key as bucket, unhex(value ->> 0) as first, unhex(value ->> 1) as behind from json_each(?1)
), bad as materialized (
  select b.bucket, o.status, count(*) as runs from spans b cross join everbell_outcomes o indexed by everbell_outcomes_bad
  where o.status <> 'succeeded' and o.run_id >= b.first and o.run_id < b.behind
  group by b.bucket, o.status
)
select b.bucket, 'succeeded' as status,
       (select count(*) from everbell_outcomes o where o.run_id >= b.first and o.run_id < b.behind)
       - coalesce((select sum(f.runs) from bad f where f.bucket = b.bucket), 0) as runs
from spans b
union all
select bucket, status, runs from bad
union all
select b.bucket, 'skipped', count(*) from spans b cross join everbell_runs r indexed by everbell_runs_skipped
where r.skip_reason is not null and r.id >= b.first and r.id < b.behind
group by b.bucket
union all
select b.bucket, a.status, count(*) from spans b cross join everbell_active_runs a
where a.run_id >= b.first and a.run_id < b.behind
group by b.bucket, a.status
