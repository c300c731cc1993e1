select {columns of run_rows as r}, coalesce(a.output, o.output) as output,
       a.remote_lease, a.remote_deadline, a.progress, a.progress_message
from everbell_run_rows r
left join everbell_active_runs a on a.run_id = r.id
left join everbell_outcomes o on o.run_id = r.id
where r.id = ?1
