delete from everbell.instances where id = $1
  and not exists (select from everbell.active_runs where runner_id = $1 and status = 'running')
