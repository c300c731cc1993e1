-- One-time jobs that are over and that nothing refers to any more.
select j.id from everbell_jobs j
where j.status = 'retired' and j.schedule_type = 'one_time' and j.updated_at < ?1 and j.run_at < ?1
  and not exists (select 1 from everbell_runs r where r.job_id = j.id)
  and not exists (select 1 from everbell_active_runs a where a.job_id = j.id)
  and not exists (select 1 from everbell_gaps g where g.job_id = j.id)
  and not exists (select 1 from everbell_sweeps s where s.job_id = j.id)
  and not exists (select 1 from everbell_jobs o where o.job_key = j.job_key and o.version < j.version and o.schedule_type <> 'one_time')
  and j.job_key not in (select coalesce(d.policies ->> 'dependsOn', '') from everbell_jobs d where d.status <> 'retired'
                             and d.policies like '%"dependsOn"%')
order by j.updated_at, j.id limit ?2
