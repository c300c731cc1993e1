-- The earliest timers first, so that a million of them are not grouped for a page.
select job_id, next_run_at, min(org_id) as first_org, count(*) as orgs
from (
  select job_id, next_run_at, org_id from everbell_timers
  where next_run_at >= ?1 and next_run_at < ?2 and org_id <> '' order by next_run_at, job_id, org_id limit ?3
)
group by job_id, next_run_at order by next_run_at, job_id
