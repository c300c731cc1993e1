-- First the ids of the page, so that last runs are looked up for its rows only. When they were is looked up for all, in the
-- index of the history; what never ran comes last, as if at the beginning of time.
-- Last runs that are asked for are looked up in the order of the page, so that its end ends the search.
with page as materialized (
  select s.id, s.last_run_at from (
    select j.id, coalesce(l.at, '-infinity') as last_run_at from jobs j
    left join lateral (select r.at from runs r where r.job_id = j.id order by r.at desc limit 1) l on true
    where
      ($1::text[] is null or j.status = any($1))
      and ($2::text[] is null or j.target = any($2))
      and ($3::text is null or j.job_key = $3)
      and ($4::text is null or position(lower($4) in lower(j.job_key || ' ' || j.target || ' ' || j.description)) > 0)
      and ($5::text is null or j.source = $5)
      and ($7::boolean is null or (j.error is not null) = $7)
      and ($8::boolean is distinct from true or j.consecutive_failures > 0)
      and ($8 is distinct from false or j.consecutive_failures = 0)
      and ($9::boolean is null or (j.schedule_type = 'one_time') = $9)
      and ($10::boolean is distinct from true or exists (select from timers n where n.job_id = j.id and n.next_run_at is not null))
      and ($10 is distinct from false or not exists (select from timers n where n.job_id = j.id and n.next_run_at is not null))
      and ($11::text is null or starts_with(j.labels, '{' || $11) or position(',' || $11 in j.labels) > 0)
      and ($13::uuid is null or coalesce(l.at, '-infinity') < coalesce($12::timestamptz, '-infinity')
           or (coalesce(l.at, '-infinity') = coalesce($12::timestamptz, '-infinity') and j.id < $13))
    order by coalesce(l.at, '-infinity') desc, j.id desc offset 0
  ) s
  where $6::text[] is null
    or (not $6 <@ array['pending', 'running'] or s.id in (select a.job_id from active_runs a where a.status = any($6)))
    and (
      select case when l.skip_reason is not null then 'skipped'
             else coalesce((select o.status from outcomes o where o.run_id = l.id),
                           (select a.status from active_runs a where a.run_id = l.id)) end
      from (select r.id, r.skip_reason from runs r where r.job_id = s.id order by r.at desc, r.id desc limit 1) l
    ) = any($6)
  order by s.last_run_at desc, s.id desc limit $14
)
select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.timezone, j.anchor_at, j.start_at,
       j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source, j.supersedes_job_id,
       j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at, j.paused_until,
       j.revision, j.consecutive_failures, j.updated_by, j.updated_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date,
       (select r.id from runs r where r.job_id = j.id order by r.at desc, r.id desc limit 1) as last_run_id,
       nullif(p.last_run_at, '-infinity') as last_run_at
from page p
join jobs j on j.id = p.id
left join timers t on t.job_id = j.id and t.org_id = ''
order by p.last_run_at desc, j.id desc
