select id, revision, job_key, org_id, requested_at, requested_by, reason, from_at, to_at, status, progress, updated_at
from everbell_backfills where is_open and (?1 is null or job_key = ?1)
order by updated_at, id limit ?2
