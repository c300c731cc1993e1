insert into active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at)
select unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, 'pending', value ->> 4, value ->> 5, 0,
       value ->> 6
from json_each(?1)
