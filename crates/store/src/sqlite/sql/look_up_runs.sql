select v.id, v.at, v.trigger, v.status, v.attempt from everbell_run_rows v
where v.id in (select unhex(value) from json_each(?1))
