with new as (
  insert into everbell.jobs
    (id, job_key, version, target, payload, schedule_type, cron_expression, run_at, timezone, anchor_at, start_at,
     end_at, dst_gap, dst_fold, scope, policies, labels, description, source, content_hash, created_by, created_at,
     status, error, pause_reason, paused_by, paused_at, paused_until, revision, consecutive_failures, updated_by,
     updated_at, trace_context)
  select id, job_key, version, target, payload, schedule_type, cron_expression, run_at, timezone, anchor_at, start_at,
         end_at, dst_gap, dst_fold, scope, policies, labels, description, source, content_hash, created_by,
         created_at, status, error, pause_reason, paused_by, paused_at, paused_until, revision, consecutive_failures,
         updated_by, updated_at, trace_context
  from unnest($1::uuid[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
            $9::text[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::text[], $14::text[],
            $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bytea[], $21::text[],
            $22::timestamptz[], $23::text[], $24::text[], $25::text[], $26::text[], $27::timestamptz[],
            $28::timestamptz[], $29::bigint[], $30::integer[], $31::text[], $32::timestamptz[], $35::text[])
    as j (id, job_key, version, target, payload, schedule_type, cron_expression, run_at, timezone, anchor_at,
          start_at, end_at, dst_gap, dst_fold, scope, policies, labels, description, source, content_hash, created_by,
          created_at, status, error, pause_reason, paused_by, paused_at, paused_until, revision, consecutive_failures,
          updated_by, updated_at, trace_context)
)
insert into everbell.timers (job_id, org_id, target, next_run_at, last_slot_at)
select job_id, '', target, next_run_at, last_slot_at
from unnest($1::uuid[], $4::text[], $33::timestamptz[], $34::timestamptz[]) as t (job_id, target, next_run_at, last_slot_at)
