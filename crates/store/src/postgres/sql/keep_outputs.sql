update active_runs a
set output = g.output
from unnest($1::uuid[], $2::integer[], $3::text[]) as g (run_id, attempt, output)
where a.run_id = any(array[g.run_id]) and a.attempt = g.attempt and a.status = 'running'
