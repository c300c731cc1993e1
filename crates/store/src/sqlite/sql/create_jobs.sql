insert into everbell_jobs (id, job_key, version, target, payload, schedule_type, cron_expression, run_at, timezone, anchor_at,
                  start_at, end_at, dst_gap, dst_fold, scope, policies, labels, description, source, content_hash,
                  created_by, created_at, status, error, pause_reason, paused_by, paused_at, paused_until, revision,
                  consecutive_failures, updated_by, updated_at, trace_context)
select unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
       value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16, value ->> 17,
       value ->> 18, unhex(value ->> 19), value ->> 20, value ->> 21, value ->> 22, value ->> 23, value ->> 24, value ->> 25,
       value ->> 26, value ->> 27, value ->> 28, value ->> 29, value ->> 30, value ->> 31, value ->> 32
from json_each(?1)
