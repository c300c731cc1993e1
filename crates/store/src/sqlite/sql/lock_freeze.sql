select id, starts_at, ends_at, reason, scope, created_by, created_at, ended_at, ended_by
from everbell_freezes where id = ?1
