-- What prune_runs, prune_gaps, prune_audit, prune_jobs and prune_inbox would delete without a limit.
select (select count(*) from everbell.runs r left join everbell.outcomes o on o.run_id = r.id
        where (o.finished_at < $1 or (r.skip_reason is not null and r.created_at < $1)) and r.id < $2) as runs,
       (select count(*) from everbell.gaps where created_at < $1) as gaps,
       (select count(*) from everbell.audit where at < $1) as audit,
       (select count(*) from everbell.jobs j
        where j.status = 'retired' and j.schedule_type = 'one_time' and j.updated_at < $1 and j.run_at < $1
          and not exists (select from everbell.runs r left join everbell.outcomes o on o.run_id = r.id where r.job_id = j.id
                            and not (coalesce(o.finished_at < $1, r.skip_reason is not null and r.created_at < $1) and r.id < $2))
          and not exists (select from everbell.active_runs a where a.job_id = j.id)
          and not exists (select from everbell.gaps g where g.job_id = j.id and g.created_at >= $1)
          and not exists (select from everbell.sweeps s where s.job_id = j.id)
          and not exists (select from everbell.jobs o where o.job_key = j.job_key and o.version < j.version and o.schedule_type <> 'one_time')
          and j.job_key not in (select coalesce(d.policies::jsonb ->> 'dependsOn', '') from everbell.jobs d where d.status <> 'retired'
                             and d.policies like '%"dependsOn"%')) as jobs,
       (select count(*) from everbell.inbox where answered_at < $1) as inbox
