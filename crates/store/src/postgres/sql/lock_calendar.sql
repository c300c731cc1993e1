select name, version, applied_version, content, source, updated_by, created_at, updated_at
from everbell.calendars where name = $1 for update
