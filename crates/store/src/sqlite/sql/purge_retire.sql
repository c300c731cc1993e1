update everbell_jobs set status = 'retired', pause_reason = null, paused_by = null, paused_at = null, paused_until = null,
                revision = revision + 1, updated_by = ?2, updated_at = ?3
where id in (select unhex(value) from json_each(?1)) and status <> 'retired'
