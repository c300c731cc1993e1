update everbell.jobs j set consecutive_failures = g.failures
from unnest($1::uuid[], $2::integer[]) as g (id, failures)
where j.id = any(array[g.id]) and j.consecutive_failures <> g.failures
