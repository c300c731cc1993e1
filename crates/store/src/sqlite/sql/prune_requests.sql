delete from everbell_requests where key in (select key from everbell_requests where created_at < ?1 order by created_at limit ?2)
