-- `is true`, so that no index of all slots, or of all that live, offers itself.
update everbell.jobs set status = 'retired', pause_reason = null, paused_by = null, paused_at = null, paused_until = null,
                revision = revision + 1, updated_by = 'everbell', updated_at = $2
where id = any(array(select job_id from everbell.runs where id = any($1) and (nonce = 0) is true))
  and schedule_type = 'one_time' and (status <> 'retired') is true
