-- The last heartbeat of an instance that scheduled: the next instance sees from it for how long nothing ran.
insert into everbell_departures (id, heartbeat_at)
select 1, heartbeat_at from everbell_instances
where id = ?1 and instr(roles, '"scheduler"') > 0
  and not exists (select 1 from everbell_active_runs where runner_id = ?1 and status = 'running')
on conflict (id) do update set heartbeat_at = max(heartbeat_at, excluded.heartbeat_at)
