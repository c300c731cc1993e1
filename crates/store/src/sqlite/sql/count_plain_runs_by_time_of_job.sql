-- From indexes where they tell: of all runs of the job, what is not among the few others has succeeded. The others of a
-- busy job are looked for among those of all jobs, which are fewer than its own runs.
with spans as materialized (
  select key as bucket, value ->> 0 as first, value ->> 1 as behind from json_each(?1)
), every as materialized (
  select b.bucket, count(*) as runs from everbell_jobs j cross join spans b cross join everbell_runs r
  where j.job_key = ?2 and r.job_id = j.id and r.at >= b.first and r.at < b.behind
  group by b.bucket
), size as materialized (
  select coalesce(sum(runs), 0) > 2000 as busy, (select min(first) from spans) as first,
         (select max(behind) from spans) as behind
  from every
), others as materialized (
  select r.at, o.status from size s cross join everbell_jobs j cross join everbell_runs r cross join everbell_outcomes o indexed by everbell_outcomes_bad
  where not s.busy and j.job_key = ?2 and r.job_id = j.id and r.at >= s.first and r.at < s.behind
    and o.run_id = r.id and o.status <> 'succeeded'
  union all
  select r.at, o.status from size s cross join everbell_outcomes o indexed by everbell_outcomes_bad cross join everbell_runs r cross join everbell_jobs j
  where s.busy and o.status <> 'succeeded' and o.run_id >= ?3 and o.run_id < ?4
    and r.id = o.run_id and j.id = r.job_id and j.job_key = ?2
  union all
  select r.at, 'skipped' from size s cross join everbell_jobs j cross join everbell_runs r
  where not s.busy and j.job_key = ?2 and r.job_id = j.id and r.at >= s.first and r.at < s.behind
    and r.skip_reason is not null
  union all
  select r.at, 'skipped' from size s cross join everbell_runs r indexed by everbell_runs_skipped cross join everbell_jobs j
  where s.busy and r.skip_reason is not null and r.id >= ?3 and r.id < ?4 and j.id = r.job_id and j.job_key = ?2
  union all
  select r.at, a.status from everbell_jobs j cross join everbell_active_runs a cross join everbell_runs r
  where j.job_key = ?2 and a.job_id = j.id and r.id = a.run_id
), counted as materialized (
  select b.bucket, o.status, count(*) as runs from others o cross join spans b
  where o.at >= b.first and o.at < b.behind
  group by b.bucket, o.status
)
select e.bucket, 'succeeded' as status,
       e.runs - coalesce((select sum(c.runs) from counted c where c.bucket = e.bucket), 0) as runs
from every e
union all
select bucket, status, runs from counted
