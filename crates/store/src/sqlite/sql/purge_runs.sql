-- The trigger runs_gone deletes the outcomes.
delete from everbell_runs where id in (
  select id from everbell_runs where job_id in (select unhex(value) from json_each(?1)) limit ?2
)
