-- What prune_runs, prune_gaps, prune_audit, prune_jobs and prune_inbox would delete without a limit.
select (select count(*) from everbell_outcomes where run_id < ?2 and finished_at < ?1)
       + (select count(*) from everbell_runs indexed by everbell_runs_skipped
          where skip_reason is not null and id < ?2 and created_at < ?1) as runs,
       (select count(*) from everbell_gaps where created_at < ?1) as gaps,
       (select count(*) from everbell_audit where at < ?1) as audit,
       (select count(*) from everbell_jobs j
        where j.status = 'retired' and j.schedule_type = 'one_time' and j.updated_at < ?1 and j.run_at < ?1
          and not exists (select 1 from everbell_runs r left join everbell_outcomes o on o.run_id = r.id where r.job_id = j.id
                            and not (coalesce(o.finished_at < ?1, r.skip_reason is not null and r.created_at < ?1) and r.id < ?2))
          and not exists (select 1 from everbell_active_runs a where a.job_id = j.id)
          and not exists (select 1 from everbell_gaps g where g.job_id = j.id and g.created_at >= ?1)
          and not exists (select 1 from everbell_sweeps s where s.job_id = j.id)
          and not exists (select 1 from everbell_jobs o where o.job_key = j.job_key and o.version < j.version and o.schedule_type <> 'one_time')
          and j.job_key not in (select coalesce(d.policies ->> 'dependsOn', '') from everbell_jobs d where d.status <> 'retired'
                             and d.policies like '%"dependsOn"%')) as jobs,
       (select count(*) from everbell_inbox where answered_at < ?1) as inbox
