insert into everbell_backfills (id, revision, job_key, org_id, requested_at, requested_by, reason, from_at, to_at, status, progress,
                               updated_at, is_open, paused_ok, run_trigger)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
