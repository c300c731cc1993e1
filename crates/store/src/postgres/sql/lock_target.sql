select label, revision, definition, updated_by, created_at, updated_at from everbell.targets where label = $1 for update
