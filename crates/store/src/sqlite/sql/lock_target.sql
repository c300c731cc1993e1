select label, revision, definition, updated_by, created_at, updated_at from everbell_targets where label = ?1
