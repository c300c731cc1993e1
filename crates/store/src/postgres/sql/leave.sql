-- The last time at which it scheduled stays known: the next instance sees from it for how long nothing ran. A time in the future is
-- of a clock that was wrong, and gives way.
with gone as (
  delete from everbell.instances where id = $1
    and not exists (select from everbell.active_runs where runner_id = $1 and status = 'running')
  returning heartbeat_at, roles
)
insert into everbell.departures as d (id, heartbeat_at)
select 1, least(heartbeat_at, $2) from gone where position('"scheduler"' in roles) > 0
on conflict (id) do update set heartbeat_at =
  case when d.heartbeat_at > $3 then excluded.heartbeat_at else greatest(d.heartbeat_at, excluded.heartbeat_at) end
