-- In the place of one that is forgotten, and of no other.
insert into everbell.requests (key, fingerprint, created_at, deed) values ($1, $2, $3, $4)
on conflict (key) do update
set fingerprint = excluded.fingerprint, created_at = excluded.created_at, deed = excluded.deed, status = null, body = null
where requests.created_at < $5
