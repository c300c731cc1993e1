update everbell_jobs set error = g.error, revision = revision + 1, updated_by = 'everbell', updated_at = ?2
from (select unhex(value ->> 0) as id, value ->> 1 as error from jsonb_each(?1)) g
where everbell_jobs.id = g.id and everbell_jobs.status <> 'retired'
returning id, job_key, error
