select id, kind, job_key, org_id, opened_at, closed_at, state from everbell_problems where id = ?1
