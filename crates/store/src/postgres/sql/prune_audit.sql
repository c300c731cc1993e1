delete from everbell.audit where id in (select id from everbell.audit where at < $1 order by id limit $2)
