-- The one statement that moves a mark back. The last run is the last one that was not ahead.
update everbell.timers t
set next_run_at = case when j.status = 'active' then g.next_run_at end, last_slot_at = g.last_slot_at,
    rescheduled_from = null, last_local_date = g.last_local_date,
    last_run_at = (select r.at from everbell.runs r where r.job_id = t.job_id and r.org_id = t.org_id and r.at <= $6
                   and r.skip_reason is distinct from 'operator' order by r.at desc limit 1),
    last_run_id = (select r.id from everbell.runs r where r.job_id = t.job_id and r.org_id = t.org_id and r.at <= $6
                   and r.skip_reason is distinct from 'operator' order by r.at desc limit 1)
from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::text[])
       as g (job_id, org_id, next_run_at, last_slot_at, last_local_date)
  join everbell.jobs j on j.id = g.job_id
where t.job_id = any(array[g.job_id]) and t.org_id = g.org_id
