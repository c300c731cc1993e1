select min(deadline) from everbell.run_groups where closed_at is null
