delete from everbell.gaps where id in (select id from everbell.gaps where created_at < $1 order by id limit $2)
