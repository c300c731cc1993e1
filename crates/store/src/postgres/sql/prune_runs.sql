-- Oldest first, by the order of ids; what is active is neither ended nor skipped. A timer whose last run goes (of its version
-- or of one before) is given the last of those that stay, unless it is locked: then it shows none until it fires again, and nobody waits for anybody.
with old as materialized (
  select r.id from everbell.runs r left join everbell.outcomes o on o.run_id = r.id
  where (o.finished_at < $1 or (r.skip_reason is not null and r.created_at < $1))
    and r.id < $3
  order by r.id limit $2
), ended as (
  delete from everbell.outcomes o using old where o.run_id = old.id
), without as materialized (
  select t.job_id from old join everbell.runs r on r.id = old.id
  cross join lateral (
    select r.job_id as id
    union all
    select v.id from everbell.jobs j join everbell.jobs v on v.job_key = j.job_key and v.status <> 'retired'
    where j.id = r.job_id and v.id <> r.job_id
  ) v
  join everbell.timers t on t.job_id = v.id and t.org_id = ''
  where t.last_run_id = old.id
  for update of t skip locked
), shown as (
  update everbell.timers t
  set (last_run_at, last_run_id) = (
    select r.at, r.id from everbell.runs r
    where r.job_id = t.job_id and r.skip_reason is distinct from 'operator' and r.id not in (select id from old)
    order by r.at desc, r.id desc limit 1)
  where t.job_id = any(array(select job_id from without)) and t.org_id = ''
)
delete from everbell.runs r using old where r.id = old.id
