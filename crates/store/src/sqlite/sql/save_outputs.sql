update everbell_active_runs
set output = g.output
from (select unhex(value ->> 0) as run_id, value ->> 1 as attempt, value ->> 2 as output from jsonb_each(?1)) g
where everbell_active_runs.run_id = g.run_id and everbell_active_runs.attempt = g.attempt and everbell_active_runs.status = 'running'
  -- The output of a run that was handed over is its remote side's.
  and everbell_active_runs.runner_id <> zeroblob(16)
returning run_id
