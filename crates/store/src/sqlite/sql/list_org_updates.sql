select id, job_id, job_key, work, detail, actor, at, reached, seen from everbell_sweeps order by id limit ?1
