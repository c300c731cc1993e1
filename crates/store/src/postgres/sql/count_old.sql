-- What prune_runs, prune_gaps and prune_audit would delete without a limit.
select (select count(*) from everbell.runs r left join everbell.outcomes o on o.run_id = r.id
        where (o.finished_at < $1 or (r.skip_reason is not null and r.created_at < $1)) and r.id < $2) as runs,
       (select count(*) from everbell.gaps where created_at < $1) as gaps,
       (select count(*) from everbell.audit where at < $1) as audit
