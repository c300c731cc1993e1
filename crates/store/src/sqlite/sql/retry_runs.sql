update everbell_active_runs
set status = 'pending', held = 0, available_at = g.available_at, lease_until = null, failure_code = g.failure_code,
    failure_message = g.failure_message, failure_details = g.failure_details,
    output = coalesce(g.output, everbell_active_runs.output),
    earlier = coalesce(everbell_active_runs.earlier || g.earlier, g.earlier, everbell_active_runs.earlier)
from (
  select unhex(value ->> 0) as run_id, value ->> 1 as attempt, value ->> 2 as available_at, value ->> 3 as failure_code,
         value ->> 4 as failure_message, value ->> 5 as failure_details, value ->> 6 as output, value ->> 7 as earlier
  from jsonb_each(?1)
) g
where everbell_active_runs.run_id = g.run_id and everbell_active_runs.attempt = g.attempt and everbell_active_runs.status = 'running'
returning run_id, job_id, cancel_by
