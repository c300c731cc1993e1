select name, version, applied_version, content, source, updated_by, created_at, updated_at from everbell.calendars order by name collate "C"
