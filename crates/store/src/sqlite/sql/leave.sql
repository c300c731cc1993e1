delete from everbell_instances where id = ?1
  and not exists (select 1 from everbell_active_runs where runner_id = ?1 and status = 'running')
