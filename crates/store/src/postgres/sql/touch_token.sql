-- To the minute: a busy token must not write at every request.
update everbell.tokens set last_used_at = $2 where name = $1 and (last_used_at is null or last_used_at < $2)
