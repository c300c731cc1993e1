-- What prune_runs, prune_gaps and prune_audit would delete without a limit.
select (select count(*) from outcomes where run_id < ?2 and finished_at < ?1)
       + (select count(*) from runs indexed by runs_skipped
          where skip_reason is not null and id < ?2 and created_at < ?1) as runs,
       (select count(*) from gaps where created_at < ?1) as gaps,
       (select count(*) from audit where at < ?1) as audit
