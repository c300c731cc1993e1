update everbell_jobs set status = 'retired', pause_reason = null, paused_by = null, paused_at = null, paused_until = null,
                revision = revision + 1, updated_by = 'everbell', updated_at = ?2
where schedule_type = 'one_time' and status <> 'retired'
  and id in (select r.job_id from json_each(?1) e cross join everbell_runs r where r.id = unhex(e.value) and r.nonce = 0)
