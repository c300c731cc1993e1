-- Of each version the newest, in the order of the index, so that a busy job costs no more than a quiet one.
select k.value as job_key, (
  select o.finished_at from everbell_outcomes o where o.run_id = (
    select max((
      select r.id from everbell_runs r
      where r.job_id = j.id and (select s.status from everbell_outcomes s where s.run_id = r.id) = 'succeeded'
      order by r.at desc, r.id desc limit 1
    )) from everbell_jobs j where j.job_key = k.value
  )
) as finished_at
from json_each(?1) k
order by k.value
