select * from run_rows where id = any($1)
