select id, token_hash, actor, role, created_at, expires_at, last_used_at, address, user_agent from everbell_sessions
where expires_at > ?1 and last_used_at > ?5 and (?2 is null or id = ?2) and (?3 is null or actor = ?3)
order by created_at desc, id desc limit ?4
