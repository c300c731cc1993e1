select hour, sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed, sum(canceled)::bigint as canceled, sum(skipped)::bigint as skipped
from everbell.run_counters
where hour >= $1 and hour < $2 and job_key = $3 and job_key <> ''
group by hour
order by hour
