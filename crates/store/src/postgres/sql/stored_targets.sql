select label, revision, definition, updated_by, created_at, updated_at from everbell.targets order by label collate "C"
