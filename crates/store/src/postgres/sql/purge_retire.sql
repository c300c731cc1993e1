update everbell.jobs set status = 'retired', pause_reason = null, paused_by = null, paused_at = null, paused_until = null,
                revision = revision + 1, updated_by = $2, updated_at = $3
where id = any($1) and status <> 'retired'
