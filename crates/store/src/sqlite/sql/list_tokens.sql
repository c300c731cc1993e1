select name, role, created_at, expires_at, revoked_at, last_used_at from everbell_tokens order by name
