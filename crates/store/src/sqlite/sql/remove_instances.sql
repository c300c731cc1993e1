-- One that still holds runs stays until they are settled: its lapsed lease tells the others to look.
delete from everbell_instances where heartbeat_at < ?1
  and not exists (select 1 from everbell_active_runs a where a.runner_id = everbell_instances.id and a.status = 'running')
