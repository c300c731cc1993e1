delete from everbell.deliveries
where id = any(array(select id from everbell.deliveries where ended_at < $1 order by ended_at limit $2))
