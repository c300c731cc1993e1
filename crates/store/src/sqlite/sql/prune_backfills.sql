delete from everbell_backfills
where id in (select id from everbell_backfills where not is_open and updated_at < ?1 order by updated_at limit ?2)
