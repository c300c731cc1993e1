select j.id as job_id, o.id as org_id, j.status, j.error is not null as errored, j.updated_at as job_changed_at,
       o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at,
       w.job_key as for_job, w.enabled as wanted, w.cron_expression as own_expression, w.updated_by as overridden_by,
       w.updated_at as overridden_at
from (select unhex(value ->> 0) as job_id, value ->> 1 as org_id from json_each(?1)) g
cross join everbell_jobs j on j.id = g.job_id
cross join everbell_orgs o on o.id = g.org_id
left join everbell_org_overrides w on w.org_id = g.org_id and w.job_key = j.job_key
