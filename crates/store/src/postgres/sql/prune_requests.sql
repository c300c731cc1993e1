-- The time is asked for again, because somebody may take the place of an old one in between.
delete from everbell.requests where key in (select key from everbell.requests where created_at < $1 limit $2) and created_at < $1
