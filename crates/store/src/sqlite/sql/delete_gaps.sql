delete from everbell_gaps where id in (select unhex(value) from json_each(?1))
