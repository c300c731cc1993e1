-- In one order, so that two who write many do not wait for each other.
select o.id, o.name, o.settings, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at, o.revision, o.created_at,
       o.updated_by, o.updated_at
from everbell.orgs o where o.id = any($1) order by o.id for update
