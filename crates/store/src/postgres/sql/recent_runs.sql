-- Of each version its newest runs, in the order of the index, so that a busy job costs no more than a quiet one; then the
-- newest of all versions of a key. The limit is a subquery so that the planner does not know it: for a number that is
-- larger than an average history it would read whole histories and sort them.
select g.id, g.job_id, g.job_key, g.job_version, g.trigger, g.scheduled_at, g.created_at, g.skip_reason, g.skip_detail,
       coalesce(a.status, o.status) as status, coalesce(a.attempt, o.attempt, 0) as attempt,
       coalesce(a.started_at, o.started_at) as started_at, o.finished_at,
       coalesce(a.failure_code, o.failure_code) as failure_code
from unnest($1::text[]) as k (key)
cross join lateral (
  select n.*, j.job_key, j.version as job_version
  from everbell.jobs j
  cross join lateral (
    select r.id, r.job_id, r.trigger, r.scheduled_at, r.created_at, r.skip_reason, r.skip_detail
    from everbell.runs r
    where r.job_id = j.id and r.at >= $3 and r.at < $4
    order by r.at desc fetch first (select $2::bigint) rows with ties
  ) n
  where j.job_key = k.key
  order by n.id desc limit $2
) g
left join everbell.active_runs a on a.run_id = g.id
left join everbell.outcomes o on o.run_id = g.id
