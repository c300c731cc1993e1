update everbell.sessions set last_used_at = $2 where id = $1 and last_used_at < $2
