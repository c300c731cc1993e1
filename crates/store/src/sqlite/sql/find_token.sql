select name, role, created_at, expires_at, revoked_at, last_used_at from everbell_tokens
where hash = ?1 and revoked_at is null and (expires_at is null or expires_at > ?2)
