-- Not sorted, because an index that has the order would then be read as a whole.
select run_id, job_id, org_id, held, cancel_by is not null as cancel_requested, backfill
from everbell.active_runs where job_id = any($1) and org_id = ''
