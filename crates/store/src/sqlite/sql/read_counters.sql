-- The texts of histograms follow each other, and are added up by who reads them.
select job_key, target, sum(succeeded) as succeeded, sum(failed) as failed, sum(canceled) as canceled, sum(skipped) as skipped,
       sum(took_runs) as took_runs, sum(took_total) as took_total, max(took_longest) as took_longest,
       sum(delay_runs) as delay_runs, sum(delay_total) as delay_total, max(delay_longest) as delay_longest,
       group_concat(took_places, ' ') as took_places, group_concat(delay_places, ' ') as delay_places, group_concat(failures, ' ') as failures
from everbell_run_counters
where hour >= ?1 and hour < ?2
group by job_key, target
