delete from gaps where id in (select id from gaps where created_at < ?1 order by first_slot_at, id limit ?2)
