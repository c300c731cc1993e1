select id, job_id, job_key, work, detail, actor, at, reached, seen from sweeps where id = ?1
