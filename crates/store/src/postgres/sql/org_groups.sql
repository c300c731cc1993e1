-- Two scans, however many jobs and orgs there are: all enabled orgs by zone, and those with overrides by job.
select job_key, timezone, wanted, own_expression, orgs, first_org
from (
  select null::text as job_key, timezone, true as wanted, null::text as own_expression, count(*) as orgs,
         min(id collate "C") as first_org
  from everbell.orgs where enabled and not deleted group by timezone
  union all
  select w.job_key, o.timezone, w.enabled, w.cron_expression, count(*), min(o.id collate "C")
  from everbell.org_overrides w join everbell.orgs o on o.id = w.org_id
  where o.enabled and not o.deleted group by w.job_key, o.timezone, w.enabled, w.cron_expression
) g
order by job_key collate "C" nulls first, timezone collate "C", wanted, own_expression collate "C" nulls first limit $1
