insert into everbell.tokens (name, hash, role, created_at, expires_at) values ($1, $2, $3, $4, $5)
