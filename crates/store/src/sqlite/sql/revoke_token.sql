update everbell_tokens set revoked_at = coalesce(revoked_at, ?2) where name = ?1
