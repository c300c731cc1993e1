update everbell_deliveries
set status = ?3, next_attempt_at = coalesce(?4, next_attempt_at), error = ?5, ended_at = ?6, lease_until = null
where id = ?1 and attempt = ?2 and status = 'pending'
