with gone as (
  delete from everbell.active_runs where run_id = any($1) and status = 'pending'
  returning run_id, attempt, runner_id, claimed_at, started_at, output, earlier
)
insert into everbell.outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code, failure_message,
                      output, earlier)
select run_id, 'canceled', attempt, runner_id, claimed_at, started_at, $2, 'canceled', $3, output, earlier from gone
returning run_id
