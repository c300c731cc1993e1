-- Oldest first, by the order of ids, each half on its index; what is active is neither ended nor skipped. The trigger
-- runs_gone deletes the outcomes.
delete from everbell_runs where id in (
  select id from (
    select run_id as id from everbell_outcomes where run_id < ?3 and finished_at < ?1
    union all
    select id from everbell_runs indexed by everbell_runs_skipped where skip_reason is not null and id < ?3 and created_at < ?1
    order by 1 limit ?2
  )
)
