-- With the current version of the job, if there is one.
select g.job_key, g.name, g.opened_at, g.deadline, g.closed_at, g.started, g.runs, j.id as job_id, coalesce(j.status = 'paused', false) as is_paused
from everbell.run_groups g left join everbell.jobs j on j.job_key = g.job_key and j.status <> 'retired'
where g.closed_at is null and g.deadline <= $1 order by g.deadline, g.job_key, g.name limit $2
