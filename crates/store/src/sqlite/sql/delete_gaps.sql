delete from gaps where id in (select unhex(value) from json_each(?1))
