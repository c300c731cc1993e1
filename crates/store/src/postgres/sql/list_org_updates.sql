select id, job_id, job_key, work, detail, actor, at, reached, seen from sweeps order by id limit $1
