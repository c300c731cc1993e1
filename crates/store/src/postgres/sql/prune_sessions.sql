delete from sessions where id in (select id from sessions where expires_at < $1 order by expires_at limit $2)
