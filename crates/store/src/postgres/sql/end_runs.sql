-- What is still guarded by attempt and status leaves active_runs and enters outcomes; the rest is not mentioned.
-- If all of them succeeded, that ends the failures in a row of their jobs. `retires` is the one-time job that ends with the run.
with given as (
  select * from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[],
                       $8::text[], $9::text[], $10::text[], $13::uuid[])
    as g (run_id, attempt, from_status, status, finished_at, failure_code, failure_message, failure_details, result, output,
          retires)
), gone as (
  delete from everbell.active_runs a using given g
  where a.run_id = any(array[g.run_id]) and a.attempt = g.attempt and a.status = g.from_status
    -- Runs end alone only if no job starts after one of them: else none does, and the caller asks in a transaction.
    and not ($12 and case when exists (select from everbell.jobs where after_key is not null) then exists (
      select from given h
      join everbell.active_runs b on b.run_id = any(array[h.run_id])
      join everbell.jobs p on p.id = any(array[b.job_id])
      -- `coalesce`, so that it is read by the index of chains, never as a whole by the one of current jobs.
      join everbell.jobs c on c.after_key = any(array[p.job_key, '']) and c.after_key is not null
        and coalesce(c.status, '') <> 'retired'
        and (c.after_key <> '' or strpos(c.cron_expression, chr(10) || p.job_key || chr(10)) > 0)
    ) else false end)
  returning a.job_id, a.runner_id, a.claimed_at, a.started_at, a.output as kept, a.earlier, g.*
), ended as (
  insert into everbell.outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code,
                        failure_message, failure_details, result, output, earlier)
  select run_id, status, attempt, runner_id, claimed_at, started_at, finished_at, failure_code, failure_message,
         failure_details, result, coalesce(output, kept), earlier
  from gone
), retired as (
  -- As retire_one_time does. An array, so that every run is locked before the first job is.
  update everbell.jobs set status = 'retired', pause_reason = null, paused_by = null, paused_at = null, paused_until = null,
                  revision = revision + 1, updated_by = 'everbell', updated_at = $14,
                  consecutive_failures = case when $11 then 0 else consecutive_failures end
  where id = any(array(select retires from gone where retires is not null order by retires))
    and schedule_type = 'one_time' and (status <> 'retired') is true
  returning id
), cleared as (
  -- But not those: a statement changes a row once.
  update everbell.jobs set consecutive_failures = 0
  where $11 and consecutive_failures > 0 and id = any(array(select job_id from gone order by job_id))
    and id <> all(array(select id from retired))
)
-- As one row: a hundred cost more than the statement's own work.
select coalesce(array_agg(run_id), '{}') as runs, coalesce(array_agg(job_id), '{}') as jobs from gone
