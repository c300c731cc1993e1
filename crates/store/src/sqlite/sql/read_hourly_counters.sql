select hour, sum(succeeded) as succeeded, sum(failed) as failed, sum(canceled) as canceled, sum(skipped) as skipped
from everbell_run_counters
where hour >= ?1 and hour < ?2 and job_key = ?3 and job_key <> ''
group by hour
order by hour
