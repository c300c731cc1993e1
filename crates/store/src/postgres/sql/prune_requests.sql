delete from requests where key in (select key from requests where created_at < $1 limit $2)
