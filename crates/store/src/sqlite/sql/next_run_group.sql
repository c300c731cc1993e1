select min(deadline) from everbell_run_groups where closed_at is null
