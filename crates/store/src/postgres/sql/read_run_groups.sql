select g.job_key, g.name, g.opened_at, g.deadline, g.closed_at, g.started, g.runs from unnest($1::text[], $2::text[]) as e (job_key, name)
join everbell.run_groups g on g.job_key = e.job_key and g.name = e.name
