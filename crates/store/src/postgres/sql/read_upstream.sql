-- The latest success of any version of each key. Runs rarely end in another order than that of their slots, and never by
-- much, so the newest hundred successes of a version tell.
select k.key as job_key, (
  select max(newest.finished_at) from everbell.jobs j
  cross join lateral (
    select o.finished_at from everbell.runs r join everbell.outcomes o on o.run_id = r.id and o.status = 'succeeded'
    where r.job_id = j.id order by r.at desc, r.id desc limit 100
  ) newest
  where j.job_key = k.key
) as finished_at
from unnest($1::text[]) as k (key)
