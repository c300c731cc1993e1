-- The latest success of any version of each key. Runs that overlap may end in another order than they began, so a few of
-- the newest successes are compared; a job that failed for ever costs a bounded look.
select k.value as job_key, (
  select max((
    select max(s.finished_at) from (
      select o.finished_at
      from (select r.id, r.at from everbell_runs r where r.job_id = j.id order by r.at desc limit 10000) newest
      cross join everbell_outcomes o
      where o.run_id = newest.id and o.status = 'succeeded'
      order by newest.at desc
      limit 20
    ) s
  )) from everbell_jobs j where j.job_key = k.value
) as finished_at
from json_each(?1) k
