insert into requests (key, fingerprint, created_at) values (?1, ?2, ?3) on conflict do nothing
