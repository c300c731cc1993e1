insert into everbell.problems (id, kind, job_key, org_id, opened_at, closed_at, state)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do update set closed_at = excluded.closed_at, state = excluded.state
