select id, job_id, job_key, work, detail, actor, at, reached, seen from everbell_sweeps where id = ?1
