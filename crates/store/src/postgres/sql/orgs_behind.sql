-- Locked, so that what is decided here and what the org becomes meanwhile cannot miss each other.
select o.id, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at
from everbell.orgs o where o.id > $1 order by o.id limit $2
for share
