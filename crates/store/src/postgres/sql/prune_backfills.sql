delete from everbell.backfills
where id = any(array(select id from everbell.backfills where not is_open and updated_at < $1 order by updated_at limit $2))
