select o.id, o.name, o.settings, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at, o.revision, o.created_at,
       o.updated_by, o.updated_at
from everbell_orgs o
where not o.deleted
  and (?1 is null or instr(lower(o.id), lower(?1)) > 0 or instr(lower(o.name), lower(?1)) > 0)
  and (?2 is null or o.timezone = ?2)
  and (?3 is null or o.enabled = ?3)
  and (?4 is null or exists (select 1 from everbell_timers t where t.org_id = o.id and t.error is not null) = ?4)
  and (?5 is null or o.id > ?5)
order by o.id limit ?6
