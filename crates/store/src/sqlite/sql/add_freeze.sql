insert into everbell_freezes (id, starts_at, ends_at, reason, scope, created_by, created_at, ended_at, ended_by)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
