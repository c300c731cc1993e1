select id, token_hash, actor, role, created_at, expires_at, last_used_at, address, user_agent from everbell.sessions
where hash = $1 and expires_at > $2 and last_used_at > $3
