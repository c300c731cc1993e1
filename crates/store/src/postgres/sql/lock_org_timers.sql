-- In one order, so that two who look after the timers of orgs do not wait for each other.
select t.job_id, t.org_id, t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date, t.error
from everbell.timers t where t.job_id = any($1) and t.org_id = any($2)
order by t.job_id, t.org_id for update
