-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
-- What never ran comes last, as if at the beginning of time.
with page as materialized (
  select s.id from (
    select j.id, coalesce(j.last_run_at, '-infinity') as last_run_at, j.last_run_id from everbell.job_rows j
    where
      ($1::text[] is null or j.status = any($1))
      and ($1 is null or not 'latest' = any($1) or not exists (
        select from everbell.jobs l where l.job_key = j.job_key and l.version > j.version))
      and ($2::text[] is null or j.target = any($2))
      and ($3::text is null or j.job_key = $3)
      and ($4::text is null or position(lower($4) in lower(j.job_key || ' ' || j.target || ' ' || j.description)) > 0)
      and ($5::text is null or j.source = $5)
      and ($7::boolean is null or (j.error is not null) = $7)
      and ($8::boolean is distinct from true or j.consecutive_failures > 0)
      and ($8 is distinct from false or j.consecutive_failures = 0)
      and ($9::boolean is null or (j.schedule_type = 'one_time') = $9)
      and ($10::boolean is distinct from true or exists (select from everbell.timers n where n.job_id = j.id and n.next_run_at is not null))
      and ($10 is distinct from false or not exists (select from everbell.timers n where n.job_id = j.id and n.next_run_at is not null))
      and ($11::text is null or starts_with(j.labels, '{' || $11) or position(',' || $11 in j.labels) > 0)
      and ($13::uuid is null or coalesce(j.last_run_at, '-infinity') < coalesce($12::timestamptz, '-infinity')
           or (coalesce(j.last_run_at, '-infinity') = coalesce($12::timestamptz, '-infinity') and j.id < $13))
    order by coalesce(j.last_run_at, '-infinity') desc, j.id desc offset 0
  ) s
  where $6::text[] is null
    or ($6 && array['failed', 'canceled']
        and (select o.status from everbell.outcomes o where o.run_id = s.last_run_id and o.status <> 'succeeded') = any($6))
    or ('skipped' = any($6) and (select true from everbell.runs k where k.id = s.last_run_id and k.skip_reason is not null))
    or ($6 && array['pending', 'running'] and (select a.status from everbell.active_runs a where a.run_id = s.last_run_id) = any($6))
    or ('succeeded' = any($6) and (select o.status from everbell.outcomes o where o.run_id = s.last_run_id) = 'succeeded')
  order by s.last_run_at desc, s.id desc limit $14
)
select {columns of job_rows as j} from page p join everbell.job_rows j on j.id = p.id order by coalesce(j.last_run_at, '-infinity') desc, j.id desc
