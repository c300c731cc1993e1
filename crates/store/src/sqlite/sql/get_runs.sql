select * from everbell_run_rows where id in (select unhex(value) from json_each(?1))
