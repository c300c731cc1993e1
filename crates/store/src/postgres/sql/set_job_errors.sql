update everbell.jobs j set error = g.error, revision = revision + 1, updated_by = 'everbell', updated_at = $3
from unnest($1::uuid[], $2::text[]) as g (id, error)
where j.id = g.id and j.status <> 'retired'
returning j.id, j.job_key, j.error
