-- Beside the deed, if there is one; in the place of what is forgotten; what has an answer keeps it.
insert into everbell.requests (key, fingerprint, created_at, status, body) values ($1, $2, $3, $4, $5)
on conflict (key) do update
set status = excluded.status, body = excluded.body, fingerprint = excluded.fingerprint,
    deed = case when requests.created_at < $6 then null else requests.deed end,
    created_at = case when requests.created_at < $6 then excluded.created_at else requests.created_at end
where requests.created_at < $6 or (requests.status is null and requests.fingerprint = excluded.fingerprint)
