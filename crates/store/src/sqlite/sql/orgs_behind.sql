select o.id, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at
from everbell_orgs o where o.id > ?1 order by o.id limit ?2
