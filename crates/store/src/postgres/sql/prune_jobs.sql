-- One-time jobs that are over and that nothing refers to any more. Timers are locked before jobs, as everywhere, and those that
-- others hold are left for the next time. Returns the deleted jobs, and those that superseded one of them.
with old as materialized (
  select j.id from everbell.jobs j
  where j.status = 'retired' and j.schedule_type = 'one_time' and j.updated_at < $1 and j.run_at < $1
    and not exists (select from everbell.runs r where r.job_id = j.id)
    and not exists (select from everbell.active_runs a where a.job_id = j.id)
    and not exists (select from everbell.gaps g where g.job_id = j.id)
    and not exists (select from everbell.sweeps s where s.job_id = j.id)
    and not exists (select from everbell.jobs o where o.job_key = j.job_key and o.version < j.version and o.schedule_type <> 'one_time')
    and j.job_key not in (select coalesce(d.policies::jsonb ->> 'dependsOn', '') from everbell.jobs d where d.status <> 'retired'
                             and d.policies like '%"dependsOn"%')
  order by j.updated_at, j.id limit $2
), free as materialized (
  select t.job_id from everbell.timers t where t.job_id = any(array(select id from old)) for update skip locked
), gone as materialized (
  select j.id from everbell.jobs j
  where j.id = any(array(select id from old))
    and (j.id in (select job_id from free) or not exists (select from everbell.timers t where t.job_id = j.id))
  for update skip locked
), timers as (
  delete from everbell.timers t using gone where t.job_id = gone.id
), cut as (
  update everbell.jobs j set supersedes_job_id = null
  where j.supersedes_job_id = any(array(select id from gone)) and j.id <> all(array(select id from gone))
  returning j.id
), deleted as (
  delete from everbell.jobs j using gone where j.id = gone.id returning j.id
)
select id, true as deleted from deleted union all select id, false from cut
