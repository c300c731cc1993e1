with gone as materialized (
  select id from everbell.runs where job_id = any($1) limit $2
), ended as (
  delete from everbell.outcomes o using gone where o.run_id = gone.id
)
delete from everbell.runs r using gone where r.id = gone.id
