delete from everbell.run_counters c
using (select hour, job_key, target from everbell.run_counters where hour < $1 order by hour, job_key, target limit $2) old
where (c.hour, c.job_key, c.target) = (old.hour, old.job_key, old.target)
