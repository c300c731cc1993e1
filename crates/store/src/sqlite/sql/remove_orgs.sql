-- Removes deleted orgs, once no org update is under way.
delete from orgs where id in (
  select id from orgs where deleted and not waiting and not exists (select 1 from sweeps) order by id limit ?1
)
