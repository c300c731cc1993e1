-- The trigger runs_gone deletes the outcomes.
delete from everbell_runs where id in (select unhex(value) from json_each(?1))
