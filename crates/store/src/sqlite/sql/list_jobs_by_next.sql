-- First the ids of the page, so that last runs of jobs for each org are looked up for its rows only. What is armed comes
-- first, in the order of its index; what never fires comes last, and is not looked for before it is reached. For filters
-- that many jobs pass, so that the end of the page comes soon.
with page as materialized (
  select j.id from (
    select job_id, armed from (
      -- Two lists, each in its order, that are merged as they are read. Few jobs fire for orgs.
      select t.next_run_at as at, t.job_id, true as armed from everbell_timers t
      where t.next_run_at is not null and t.org_id = ''
        and (?13 is null or (t.next_run_at, t.job_id) > (coalesce(?12, 9223372036854775807), ?13))
      union all
      select o.next_org_run_at, o.id, true from everbell_job_rows o
      where o.scope = 'per_org' and o.next_org_run_at is not null
        and (?13 is null or (o.next_org_run_at, o.id) > (coalesce(?12, 9223372036854775807), ?13))
      order by 1, 2 limit -1
    )
    union all
    select * from (
      select n.id, false from everbell_jobs n
      where not exists (
          select 1 from everbell_timers t where t.job_id = n.id and t.org_id = '' and t.next_run_at is not null and n.scope = 'global')
        and (n.scope = 'global' or n.status <> 'active' or not exists (
          select 1 from everbell_timers t where t.job_id = n.id and t.org_id <> '' and t.next_run_at is not null))
        and (?13 is null or ?12 is not null or n.id > ?13)
      order by n.id limit -1
    )
  ) d cross join everbell_job_rows j
  where j.id = d.job_id
    and {sqlite/parts/filter_jobs.sql as j}
    and {sqlite/parts/filter_last_runs.sql as j}
  limit ?14
)
select {columns of job_rows as j} from page p cross join everbell_job_rows j where j.id = p.id
order by coalesce(j.next_run_at, j.next_org_run_at, 9223372036854775807), j.id
