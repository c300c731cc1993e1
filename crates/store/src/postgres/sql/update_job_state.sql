update everbell.jobs set status = $2, error = $3, pause_reason = $4, paused_by = $5, paused_at = $6, paused_until = $7,
                revision = $8, consecutive_failures = $9, updated_by = $10, updated_at = $11, declaration = $12
where id = $1
