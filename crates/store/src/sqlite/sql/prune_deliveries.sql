delete from everbell_deliveries where id in (select id from everbell_deliveries where ended_at < ?1 order by ended_at limit ?2)
