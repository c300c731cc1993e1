update everbell.timers t set error = g.error
from unnest($1::uuid[], $2::text[], $3::text[]) as g (job_id, org_id, error)
where t.job_id = any(array[g.job_id]) and t.org_id = g.org_id
