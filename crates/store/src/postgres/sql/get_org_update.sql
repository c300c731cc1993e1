select id, job_id, job_key, work, detail, actor, at, reached, seen from everbell.sweeps where id = $1
for update
