select run_id, job_id, org_id, held, cancel_by is not null as cancel_requested, backfill
from everbell_active_runs where job_id in (select unhex(value) from json_each(?1)) and org_id = '' order by run_id
