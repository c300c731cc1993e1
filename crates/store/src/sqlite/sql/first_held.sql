-- The held run of a target that would start first if it were its turn: one step on the index.
select priority, available_at, run_id from everbell_active_runs indexed by everbell_active_runs_waiting
where target = ?1 and held and not paused
order by priority desc, available_at, run_id
limit 1
