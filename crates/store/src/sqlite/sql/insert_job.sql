-- The version before may have been pruned meanwhile.
insert into everbell_jobs (id, job_key, version, target, payload, schedule_type, cron_expression, run_at, timezone, anchor_at,
                  start_at, end_at, dst_gap, dst_fold, scope, policies, labels, description, source, content_hash,
                  supersedes_job_id, created_by, created_at, status, error, pause_reason, paused_by, paused_at,
                  paused_until, revision, consecutive_failures, updated_by, updated_at, declaration, trace_context,
                  after_key)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
        (select id from everbell_jobs where id = ?21), ?22, ?23, ?24,
        ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36)
