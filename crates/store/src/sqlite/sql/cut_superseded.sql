-- The versions that superseded those that go.
update everbell_jobs set supersedes_job_id = null
where supersedes_job_id in (select unhex(value) from json_each(?1)) and id not in (select unhex(value) from json_each(?1))
returning id
