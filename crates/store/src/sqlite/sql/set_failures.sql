update everbell_jobs set consecutive_failures = g.failures
from (select unhex(value ->> 0) as id, value ->> 1 as failures from jsonb_each(?1)) g
where everbell_jobs.id = g.id and everbell_jobs.consecutive_failures <> g.failures
