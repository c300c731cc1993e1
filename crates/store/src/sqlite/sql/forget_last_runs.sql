-- The last run of a timer was withdrawn: it is the one before, by the index of history.
update everbell_timers as t set (last_run_at, last_run_id) = (
  select r.at, r.id from everbell_runs r where r.job_id = t.job_id and r.org_id = t.org_id order by r.at desc, r.id desc limit 1)
where t.job_id = ?1 and t.org_id = ?2 and t.last_run_id in (select unhex(value) from json_each(?3))
