select o.id, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at
from everbell.orgs o where o.waiting order by o.id limit $1
for update skip locked
