-- The last run of a timer was withdrawn: it is the one before, by the index of history.
update everbell.timers t set last_run_at = b.at, last_run_id = b.id
from (
  select o.job_id, o.org_id, r.at, r.id
  from (select job_id, org_id from everbell.timers where job_id = $1 and org_id = $2 and last_run_id = any($3)) o
  left join lateral (
    select at, id from everbell.runs where job_id = o.job_id and org_id = o.org_id order by at desc, id desc limit 1
  ) r on true
) b
where t.job_id = b.job_id and t.org_id = b.org_id
