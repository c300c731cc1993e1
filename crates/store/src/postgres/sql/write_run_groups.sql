insert into everbell.run_groups (job_key, name, opened_at, deadline, closed_at, started, runs)
select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::uuid[], $7::text[])
on conflict (job_key, name) do update set closed_at = excluded.closed_at, started = excluded.started, runs = excluded.runs
