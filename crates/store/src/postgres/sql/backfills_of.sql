select id, revision, job_key, org_id, requested_at, requested_by, reason, from_at, to_at, status, progress, updated_at
from everbell.backfills where job_key = $1 order by id desc limit $2
