-- The trigger outcomes_end takes the runs out of active_runs.
insert into everbell_outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
                      failure_message, output, earlier)
select a.run_id, 'canceled', a.attempt, a.runner_id, a.claimed_at, a.started_at, ?2, 'canceled', ?3, a.output, a.earlier
from json_each(?1) e cross join everbell_active_runs a
where a.run_id = unhex(e.value) and a.status = 'pending'
returning run_id
