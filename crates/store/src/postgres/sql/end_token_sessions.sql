delete from sessions where token_hash = (select hash from tokens where name = $1)
