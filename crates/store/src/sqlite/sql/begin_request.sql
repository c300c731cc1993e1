insert into requests (key, fingerprint, created_at) values (?1, ?2, ?3)
on conflict (key) do update
set fingerprint = excluded.fingerprint, created_at = excluded.created_at, status = null, body = null
where requests.created_at < ?4 or (requests.created_at < ?5 and requests.status is null)
