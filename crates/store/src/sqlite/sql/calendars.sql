select name, version, applied_version, content, source, updated_by, created_at, updated_at from everbell_calendars order by name
