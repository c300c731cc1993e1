select id, kind, job_key, org_id, opened_at, closed_at, state from everbell.problems where id = $1 for update
