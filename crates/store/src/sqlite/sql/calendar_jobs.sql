select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.timezone, j.anchor_at, j.start_at,
       j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source, j.supersedes_job_id,
       j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at, j.paused_until,
       j.revision, j.consecutive_failures, j.declaration, j.trace_context, j.updated_by, j.updated_at
from everbell_jobs j where j.status <> 'retired' and j.policies like ?1 order by j.job_key limit ?2
