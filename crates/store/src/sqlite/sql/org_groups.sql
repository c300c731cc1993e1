-- Two scans, however many jobs and orgs there are: all enabled orgs by zone, and those with overrides by job.
select job_key, timezone, wanted, own_expression, orgs, first_org
from (
  select null as job_key, timezone, true as wanted, null as own_expression, count(*) as orgs, min(id) as first_org
  from everbell_orgs where enabled and not deleted group by timezone
  union all
  select w.job_key, o.timezone, w.enabled, w.cron_expression, count(*), min(o.id)
  from everbell_org_overrides w join everbell_orgs o on o.id = w.org_id
  where o.enabled and not o.deleted group by w.job_key, o.timezone, w.enabled, w.cron_expression
)
order by job_key, timezone, wanted, own_expression limit ?1
