-- One that still holds runs stays until they are settled: its lapsed lease tells the others to look.
delete from everbell.instances i where heartbeat_at < $1
  and not exists (select from everbell.active_runs a where a.runner_id = i.id and a.status = 'running')
