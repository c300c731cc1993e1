select run_id, job_id, org_id, held, cancel_requested
from active_runs where job_id = any($1) order by run_id
