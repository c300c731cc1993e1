select r.*, coalesce(a.output, o.output) as output
from run_rows r
left join active_runs a on a.run_id = r.id
left join outcomes o on o.run_id = r.id
where r.id = $1
