select id, consecutive_failures from everbell.jobs where id = any($1) order by id for no key update
