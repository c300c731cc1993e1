-- Its last heartbeat stays known, if it scheduled: the next instance sees from it for how long nothing ran.
with gone as (
  delete from everbell.instances where id = $1
    and not exists (select from everbell.active_runs where runner_id = $1 and status = 'running')
  returning heartbeat_at, roles
)
insert into everbell.departures as d (id, heartbeat_at)
select 1, heartbeat_at from gone where position('"scheduler"' in roles) > 0
on conflict (id) do update set heartbeat_at = greatest(d.heartbeat_at, excluded.heartbeat_at)
