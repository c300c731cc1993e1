delete from everbell_run_counters where (hour, job_key, target) in (
  select hour, job_key, target from everbell_run_counters where hour < ?1 order by hour, job_key, target limit ?2
)
