update everbell_backfills
set revision = ?2, status = ?3, progress = ?4, updated_at = ?5, is_open = ?6, paused_ok = ?7
where id = ?1 and revision = ?8
