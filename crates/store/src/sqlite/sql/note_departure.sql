-- The last time at which an instance scheduled: the next instance sees from it for how long nothing ran. A time in the future is of a
-- clock that was wrong, and gives way.
insert into everbell_departures (id, heartbeat_at)
select 1, min(heartbeat_at, ?2) from everbell_instances
where id = ?1 and instr(roles, '"scheduler"') > 0
  and not exists (select 1 from everbell_active_runs where runner_id = ?1 and status = 'running')
on conflict (id) do update set heartbeat_at =
  case when heartbeat_at > ?3 then excluded.heartbeat_at else max(heartbeat_at, excluded.heartbeat_at) end
