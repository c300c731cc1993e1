insert into everbell.clock (id, trusted_at) values (1, $1)
on conflict (id) do update set trusted_at = excluded.trusted_at
