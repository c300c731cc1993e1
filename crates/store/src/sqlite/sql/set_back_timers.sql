-- The one statement that moves a mark back. The last run is the last one that was not ahead.
update everbell_timers
set next_run_at = iif((select status from everbell_jobs where id = everbell_timers.job_id) = 'active', g.next_run_at, null),
    last_slot_at = g.last_slot_at, rescheduled_from = null, last_local_date = g.last_local_date,
    last_run_at = (select r.at from everbell_runs r where r.job_id = everbell_timers.job_id and r.org_id = everbell_timers.org_id and r.at <= ?2
                   and r.skip_reason is not 'operator' order by r.at desc limit 1),
    last_run_id = (select r.id from everbell_runs r where r.job_id = everbell_timers.job_id and r.org_id = everbell_timers.org_id and r.at <= ?2
                   and r.skip_reason is not 'operator' order by r.at desc limit 1)
from (
  select unhex(value ->> 0) as job_id, value ->> 1 as org_id, value ->> 2 as next_run_at, value ->> 3 as last_slot_at,
         value ->> 4 as last_local_date
  from json_each(?1)
) g
where everbell_timers.job_id = g.job_id and everbell_timers.org_id = g.org_id
