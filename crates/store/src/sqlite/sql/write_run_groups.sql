insert into everbell_run_groups (job_key, name, opened_at, deadline, closed_at, started, runs)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, unhex(value ->> 5), value ->> 6 from json_each(?1)
where true
on conflict (job_key, name) do update set closed_at = excluded.closed_at, started = excluded.started, runs = excluded.runs
