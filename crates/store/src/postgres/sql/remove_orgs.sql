-- Of those that are gone, once nothing sweeps any more.
delete from orgs where id = any(array(
  select id from orgs where deleted and not waiting and not exists (select from sweeps) order by id limit $1 for update skip locked
))
