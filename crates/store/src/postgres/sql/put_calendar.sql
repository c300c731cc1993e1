insert into everbell.calendars (name, version, applied_version, content, source, updated_by, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (name) do update
set version = excluded.version, applied_version = excluded.applied_version, content = excluded.content,
    source = excluded.source, updated_by = excluded.updated_by, updated_at = excluded.updated_at
where everbell.calendars.version = excluded.version - 1
