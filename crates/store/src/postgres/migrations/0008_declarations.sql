-- The last sync of a job that is declared in code or in a configuration file, as JSON: the program, the hash of what it
-- declared, and the version that has this content. Null for other jobs. Core compares the hashes.
alter table jobs add column declaration text;

-- The programs that declare jobs, with the releases of each that were seen, as JSON. Core decides which release may change
-- jobs.
create table apps (
  source   text not null check (source in ('api', 'config', 'code')),
  app      text not null,
  releases text not null,
  primary key (source, app)
);

-- A job with its timer, or the first fire of its orgs.
create or replace view job_rows as
select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.schedule_type, j.timezone,
       j.anchor_at, j.start_at, j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source,
       j.supersedes_job_id, j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at,
       j.paused_until, j.revision, j.consecutive_failures, j.updated_by, j.updated_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date,
       case when j.scope = 'global' then t.last_run_at else
         (select r.at from runs r where r.job_id = j.id and r.skip_reason is distinct from 'operator'
          order by r.at desc limit 1) end as last_run_at,
       case when j.scope = 'global' then t.last_run_id else
         (select r.id from runs r where r.job_id = j.id and r.skip_reason is distinct from 'operator'
          order by r.at desc, r.id desc limit 1) end as last_run_id,
       case when j.scope = 'per_org' and j.status = 'active' then
         (select o.next_run_at from timers o where o.job_id = j.id and o.org_id <> '' and o.next_run_at is not null
          order by o.next_run_at, o.org_id limit 1) end as next_org_run_at,
       case when j.scope = 'per_org' and j.status = 'active' then
         (select o.org_id from timers o where o.job_id = j.id and o.org_id <> '' and o.next_run_at is not null
          order by o.next_run_at, o.org_id limit 1) end as next_org_id,
       j.declaration
from jobs j
left join timers t on t.job_id = j.id and t.org_id = '' and j.scope = 'global';
