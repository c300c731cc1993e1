delete from everbell_active_runs where run_id in (select unhex(value) from json_each(?1))
