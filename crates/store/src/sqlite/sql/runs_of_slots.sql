-- By the unique key of slots, for each version.
select v.id, v.at, v.trigger, v.status, v.attempt
from everbell_jobs j
cross join json_each(?3) s
cross join everbell_runs r
cross join everbell_run_rows v
where j.job_key = ?1 and r.job_id = j.id and r.at = s.value and r.org_id = ?2 and r.nonce = 0 and v.id = r.id
