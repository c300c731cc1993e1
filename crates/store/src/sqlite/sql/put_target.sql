insert into everbell_targets (label, revision, definition, updated_by, created_at, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (label) do update
set revision = excluded.revision, definition = excluded.definition, updated_by = excluded.updated_by, updated_at = excluded.updated_at
