delete from gaps where id = any($1)
