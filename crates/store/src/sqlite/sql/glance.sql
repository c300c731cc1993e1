-- Of each version its newest runs, in the order of the index, so that a busy job costs no more than a quiet one; then the
-- newest of all versions of a key.
select r.id, r.job_id, j.job_key, j.version as job_version, r.trigger, r.scheduled_at, r.created_at, r.skip_reason,
       r.skip_detail, coalesce(a.status, o.status) as status, coalesce(a.attempt, o.attempt, 0) as attempt,
       coalesce(a.started_at, o.started_at) as started_at, o.finished_at,
       coalesce(a.failure_code, o.failure_code) as failure_code
from json_each(?1) k
cross join runs r
cross join jobs j
left join active_runs a on a.run_id = r.id
left join outcomes o on o.run_id = r.id
where j.id = r.job_id
  and r.id in (
    select n.id from jobs v cross join runs n
    where v.job_key = k.value
      and n.id in (
        select s.id from runs s where s.job_id = v.id and s.at >= ?3 and s.at < ?4
        order by s.at desc, s.id desc limit ?2
      )
    order by n.id desc limit ?2
  )
