-- By its keys for each, whatever the planner believes of the size of the tables.
select g.job_id, g.org_id, j.status, j.error is not null as errored, j.updated_at as job_changed_at,
       o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at,
       w.job_key as wish_job_key, w.enabled as wish_enabled, w.cron_expression as wish_expression, w.updated_by as wish_by,
       w.updated_at as wish_at
from unnest($1::uuid[], $2::text[]) as g (job_id, org_id)
cross join lateral (select * from jobs where id = g.job_id offset 0) j
cross join lateral (select * from orgs where id = g.org_id offset 0) o
left join lateral (select * from org_overrides where org_id = g.org_id and job_key = j.job_key offset 0) w on true
