-- Removes deleted orgs, once no org update is under way.
delete from orgs where id = any(array(
  select id from orgs where deleted and not waiting and not exists (select from sweeps) order by id limit $1 for update skip locked
))
