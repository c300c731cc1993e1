delete from everbell.sessions where token_hash = (select hash from everbell.tokens where name = $1)
