-- Removes deleted orgs, once no org update is under way.
delete from everbell_orgs where id in (
  select id from everbell_orgs where deleted and not waiting and not exists (select 1 from everbell_sweeps) order by id limit ?1
)
