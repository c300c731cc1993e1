insert into everbell.sessions (id, hash, token_hash, actor, role, created_at, expires_at, last_used_at, address, user_agent)
values ($1, $2, $3, $4, $9, $5, $6, $5, $7, $8)
