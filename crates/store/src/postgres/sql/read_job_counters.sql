-- The texts of histograms follow each other, and are added up by who reads them.
select job_key, target, sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed, sum(canceled)::bigint as canceled, sum(skipped)::bigint as skipped,
       sum(took_runs)::bigint as took_runs, sum(took_total)::bigint as took_total, max(took_longest) as took_longest,
       sum(delay_runs)::bigint as delay_runs, sum(delay_total)::bigint as delay_total, max(delay_longest) as delay_longest,
       string_agg(took_places, ' ') as took_places, string_agg(delay_places, ' ') as delay_places, string_agg(failures, ' ') as failures
from everbell.run_counters
where hour >= $1 and hour < $2 and job_key = $3 and job_key <> ''
group by job_key, target
