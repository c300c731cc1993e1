select a.run_id, a.job_id, a.org_id, a.held, a.cancel_by is not null as cancel_requested, a.backfill
from (select unhex(value ->> 0) as job_id, value ->> 1 as org_id from json_each(?1)) g
cross join everbell_active_runs a on a.job_id = g.job_id and a.org_id = g.org_id
order by a.run_id
