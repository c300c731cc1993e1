update everbell.active_runs a
set status = 'pending', held = false, available_at = g.available_at, lease_until = null,
    failure_code = g.failure_code, failure_message = g.failure_message, failure_details = g.failure_details,
    output = coalesce(g.output, a.output), earlier = coalesce(a.earlier || g.earlier, g.earlier, a.earlier)
from unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
            $8::text[])
  as g (run_id, attempt, available_at, failure_code, failure_message, failure_details, output, earlier)
where a.run_id = any(array[g.run_id]) and a.attempt = g.attempt and a.status = 'running'
returning a.run_id, a.job_id, a.cancel_by
