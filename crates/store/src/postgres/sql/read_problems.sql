select id, kind, job_key, org_id, opened_at, closed_at, state from everbell.problems where closed_at is null
union all
select id, kind, job_key, org_id, opened_at, closed_at, state from everbell.problems where closed_at >= $1
order by id
