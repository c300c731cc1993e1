select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.timezone, j.anchor_at, j.start_at, j.end_at,
       j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source, j.supersedes_job_id, j.created_by,
       j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at, j.paused_until, j.revision,
       j.consecutive_failures, j.declaration, j.trace_context, j.updated_by, j.updated_at,
       w.job_key as for_job, w.enabled as wanted, w.cron_expression as own_expression, w.updated_by as overridden_by,
       w.updated_at as overridden_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date, t.error as timer_error
from everbell_jobs j
left join everbell_org_overrides w on w.org_id = ?1 and w.job_key = j.job_key
left join everbell_timers t on t.job_id = j.id and t.org_id = ?1
where j.scope = 'per_org' and j.status <> 'retired'
order by j.job_key limit ?2
