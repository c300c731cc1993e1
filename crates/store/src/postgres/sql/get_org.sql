select o.id, o.name, o.settings, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at, o.revision, o.created_at,
       o.updated_by, o.updated_at
from everbell.orgs o where o.id = $1 and not o.deleted
