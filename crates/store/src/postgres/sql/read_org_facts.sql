-- The job stays as it is until these timers are planned: a pause waits for them, and then finds their runs.
-- By its keys for each, whatever the planner believes of the size of the tables.
select g.job_id, g.org_id, j.status, j.error is not null as errored, j.updated_at as job_changed_at,
       o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at,
       w.job_key as for_job, w.enabled as wanted, w.cron_expression as own_expression, w.updated_by as overridden_by,
       w.updated_at as overridden_at
from unnest($1::uuid[], $2::text[]) as g (job_id, org_id)
cross join lateral (select * from everbell.jobs where id = g.job_id offset 0 for key share) j
cross join lateral (select * from everbell.orgs where id = g.org_id offset 0) o
left join lateral (select * from everbell.org_overrides where org_id = g.org_id and job_key = j.job_key offset 0) w on true
