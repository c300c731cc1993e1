delete from everbell_audit where id in (select id from everbell_audit where at < ?1 order by at, id limit ?2)
