delete from everbell_gaps where id in (select id from everbell_gaps where created_at < ?1 order by first_slot_at, id limit ?2)
