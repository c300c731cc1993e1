-- The same org update twice is one: a caller whose answer was lost may retry.
insert into everbell_sweeps (id, job_id, job_key, work, detail, actor, at, reached, seen, stepped_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, null, 0, ?7)
on conflict (id) do nothing
