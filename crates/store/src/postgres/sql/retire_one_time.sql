update jobs j set status = 'retired', pause_reason = null, paused_by = null, paused_at = null, paused_until = null,
                  revision = revision + 1, updated_by = 'everbell', updated_at = $2
from runs r
where r.id = any($1) and r.nonce = 0 and j.id = r.job_id and j.schedule_type = 'one_time' and j.status <> 'retired'
