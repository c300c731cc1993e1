-- Whether an instance is known, whether another one has no lease, and whether the lease of another one has ended.
select coalesce(max(id = ?1), 0), coalesce(max(id <> ?1 and lease_until is null), 0), coalesce(max(id <> ?1 and lease_until < ?2), 0)
from everbell_instances
