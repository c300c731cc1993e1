-- First the ids of the page, so that last runs are looked up for its rows only. What is armed comes first, in the order of
-- its index; what never fires comes last, and is not looked for before it is reached.
with page as materialized (
  select j.id from (
    select * from (
      select t.job_id, true as armed from timers t
      where t.next_run_at is not null and t.org_id = ''
        and (?13 is null or (t.next_run_at, t.job_id) > (coalesce(?12, 9223372036854775807), ?13))
      order by t.next_run_at, t.job_id limit -1
    )
    union all
    select * from (
      select n.id, false from jobs n
      where (n.scope <> 'global' or not exists (
          select 1 from timers t where t.job_id = n.id and t.org_id = '' and t.next_run_at is not null))
        and (?13 is null or ?12 is not null or n.id > ?13)
      order by n.id limit -1
    )
  ) s cross join jobs j
  where j.id = s.job_id and (not s.armed or j.scope = 'global')
    and (?1 is null or j.status in (select value from json_each(?1)))
    and (?2 is null or j.target in (select value from json_each(?2)))
    and (?3 is null or j.job_key = ?3)
    and (?4 is null or instr(lower(j.job_key), ?4) or instr(lower(j.target), ?4) or instr(lower(j.description), ?4))
    and (?5 is null or j.source = ?5)
    and (?7 is null or (j.error is not null) = ?7)
    and (?8 is null or (j.consecutive_failures > 0) = ?8)
    and (?9 is null or (j.schedule_type = 'one_time') = ?9)
    and (?10 is null or exists (select 1 from timers n where n.job_id = j.id and n.next_run_at is not null) = ?10)
    and (?11 is null or instr(j.labels, '{' || ?11) = 1 or instr(j.labels, ',' || ?11))
    and (?15 is null or j.id in (select unhex(value) from json_each(?15)))
    and (?6 is null
      or (
        select coalesce((select 'skipped' from runs k indexed by runs_skipped where k.id = l.id and k.skip_reason is not null),
                        (select o.status from outcomes o indexed by outcomes_bad where o.run_id = l.id and o.status <> 'succeeded'),
                        (select a.status from active_runs a where a.run_id = l.id), 'succeeded')
        from (select r.id from runs r where r.job_id = j.id order by r.at desc, r.id desc limit 1) l
      ) in (select value from json_each(?6)))
  limit ?14
)
select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.timezone, j.anchor_at, j.start_at,
       j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source, j.supersedes_job_id,
       j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at, j.paused_until,
       j.revision, j.consecutive_failures, j.updated_by, j.updated_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date,
       (select r.id from runs r where r.job_id = j.id order by r.at desc, r.id desc limit 1) as last_run_id
from page p cross join jobs j
left join timers t on t.job_id = j.id and t.org_id = '' and j.scope = 'global'
where j.id = p.id
order by coalesce(t.next_run_at, 9223372036854775807), j.id
