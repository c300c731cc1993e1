delete from everbell.timers t using unnest($1::uuid[], $2::text[]) as g (job_id, org_id)
where t.job_id = any(array[g.job_id]) and t.org_id = g.org_id
