delete from everbell_sessions where token_hash = (select hash from everbell_tokens where name = ?1)
