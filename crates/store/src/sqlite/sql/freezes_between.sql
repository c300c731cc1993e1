select id, starts_at, ends_at, reason, scope, created_by, created_at, ended_at, ended_by
from everbell_freezes where ends_at > ?1 and starts_at <= ?2 and (ended_at is null or ended_at > ?1)
