select name, role, created_at, expires_at, revoked_at, last_used_at from everbell.tokens
where role = 'admin' and revoked_at is null order by name for update
