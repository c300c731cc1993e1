-- Of each key the time that is behind so many runs of one of its versions: the newest of all versions are not older. So a busy
-- job costs no more than a quiet one, and what is too much is mostly nothing. Runs of one instant may be those of a hundred
-- thousand orgs, hence the limit. The runs of a version are one text, because each row wakes up who waits for it.
select j.id as job_id, j.job_key, j.version as job_version, (
    select json_group_array(json_array(
        hex(r.id), r.trigger, r.scheduled_at, r.created_at, r.skip_reason, r.skip_detail, coalesce(a.status, o.status),
        coalesce(a.attempt, o.attempt, 0), coalesce(a.started_at, o.started_at), o.finished_at,
        coalesce(a.failure_code, o.failure_code)))
    from (
      select s.id from everbell_runs s where s.job_id = j.id and s.at >= w.oldest and s.at < ?4
      order by s.at desc, s.id desc limit ?2
    ) i
    cross join everbell_runs r left join everbell_active_runs a on a.run_id = r.id left join everbell_outcomes o on o.run_id = r.id
    where r.id = i.id
  ) as runs
from (
  select k.value as key, coalesce((
      select max((
        select s.at from everbell_runs s where s.job_id = v.id and s.at >= ?3 and s.at < ?4 order by s.at desc limit 1 offset ?2 - 1
      )) from everbell_jobs v where v.job_key = k.value
    ), ?3) as oldest
  from json_each(?1) k limit -1
) w
cross join everbell_jobs j
where j.job_key = w.key
