-- By its key for each, whatever the planner believes of the size of the table.
select a.run_id, a.job_id, a.org_id, a.held, a.cancel_by is not null as cancel_requested, a.backfill
from unnest($1::uuid[], $2::text[]) as g (job_id, org_id)
cross join lateral (select * from everbell.active_runs where job_id = g.job_id and org_id = g.org_id offset 0) a
