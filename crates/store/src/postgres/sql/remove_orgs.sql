-- Removes deleted orgs, once no org update is under way.
delete from everbell.orgs where id = any(array(
  select id from everbell.orgs where deleted and not waiting and not exists (select from everbell.sweeps) order by id limit $1 for update skip locked
))
