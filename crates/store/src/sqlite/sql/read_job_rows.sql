select j.id, j.job_key, j.version, j.target, j.payload, j.cron_expression, j.run_at, j.timezone, j.anchor_at, j.start_at,
       j.end_at, j.dst_gap, j.dst_fold, j.scope, j.policies, j.labels, j.description, j.source, j.supersedes_job_id,
       j.created_by, j.created_at, j.status, j.error, j.pause_reason, j.paused_by, j.paused_at, j.paused_until,
       j.revision, j.consecutive_failures, j.updated_by, j.updated_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date,
       (select r.id from runs r where r.job_id = j.id order by r.at desc, r.id desc limit 1) as last_run_id
from jobs j
left join timers t on t.job_id = j.id and t.org_id = '' and j.scope = 'global'
where j.id in (select unhex(value) from json_each(?1))
