delete from everbell_run_groups where (job_key, name) in (
  select job_key, name from everbell_run_groups where closed_at < ?1 order by closed_at limit ?2
)
