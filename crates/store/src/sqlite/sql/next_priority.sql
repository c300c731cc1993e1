-- The highest priority of the runs that may start, up to this one: one step on the index.
select max(priority) from everbell_active_runs indexed by everbell_active_runs_pending
where target = ?1 and status = 'pending' and not held and not paused and priority <= ?2
