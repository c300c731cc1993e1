select g.job_key, g.name, g.opened_at, g.deadline, g.closed_at, g.started, g.runs from json_each(?1) e
cross join everbell_run_groups g on g.job_key = e.value ->> 0 and g.name = e.value ->> 1
