-- The highest priority of those that wait, up to this one: one step on the index.
select max(priority) from everbell_active_runs indexed by everbell_active_runs_pending
where target = ?1 and status = 'pending' and priority <= ?2
