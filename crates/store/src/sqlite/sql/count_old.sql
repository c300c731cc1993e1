-- What prune_runs, prune_gaps and prune_audit would delete without a limit.
select (select count(*) from everbell_outcomes where run_id < ?2 and finished_at < ?1)
       + (select count(*) from everbell_runs indexed by everbell_runs_skipped
          where skip_reason is not null and id < ?2 and created_at < ?1) as runs,
       (select count(*) from everbell_gaps where created_at < ?1) as gaps,
       (select count(*) from everbell_audit where at < ?1) as audit
