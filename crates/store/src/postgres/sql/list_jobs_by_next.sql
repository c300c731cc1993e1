-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only.
-- How last runs ended is looked up in the order of the page, so that its end ends the search.
-- What never fires comes last, as if at the end of time.
with page as materialized (
  select s.id from (
    select j.id, coalesce(j.next_run_at, j.next_org_run_at, 'infinity') as next_run_at, j.last_run_id from everbell.job_rows j
    where {postgres/parts/filter_jobs.sql as j}
      and ($13::uuid is null or coalesce(j.next_run_at, j.next_org_run_at, 'infinity') > coalesce($12::timestamptz, 'infinity')
           or (coalesce(j.next_run_at, j.next_org_run_at, 'infinity') = coalesce($12::timestamptz, 'infinity') and j.id > $13))
    order by coalesce(j.next_run_at, j.next_org_run_at, 'infinity'), j.id offset 0
  ) s
  where {postgres/parts/filter_last_runs.sql as s}
  order by s.next_run_at, s.id limit $14
)
select {columns of job_rows as j} from page p join everbell.job_rows j on j.id = p.id order by coalesce(j.next_run_at, j.next_org_run_at, 'infinity'), j.id
