-- How the last run of a job ended.
(?6 is null
  or ((instr(?6, 'failed') or instr(?6, 'canceled')) and (
        select o.status from everbell_outcomes o indexed by everbell_outcomes_bad where o.run_id = {row}.last_run_id and o.status <> 'succeeded'
      ) in (select value from json_each(?6)))
  or (instr(?6, 'skipped') and (
        select true from everbell_runs k indexed by everbell_runs_skipped where k.id = {row}.last_run_id and k.skip_reason is not null))
  or ((instr(?6, 'pending') or instr(?6, 'running')) and (
        select a.status from everbell_active_runs a where a.run_id = {row}.last_run_id) in (select value from json_each(?6)))
  or (instr(?6, 'succeeded') and (select o.status from everbell_outcomes o where o.run_id = {row}.last_run_id) = 'succeeded'))
