-- What somebody else has locked is passed over: whoever never waits while holding locks is in no deadlock with those who
-- extend leases or end runs.
with free as materialized (
  select a.ctid as place, g.output
  from unnest($1::uuid[], $2::integer[], $3::text[]) as g (run_id, attempt, output)
  join everbell.active_runs a on a.run_id = any(array[g.run_id]) and a.attempt = g.attempt and a.status = 'running'
    -- The output of a run that was handed over is its remote side's.
    and a.runner_id <> '00000000-0000-0000-0000-000000000000'
  for update of a skip locked
)
update everbell.active_runs a set output = f.output from free f where a.ctid = f.place returning a.run_id
