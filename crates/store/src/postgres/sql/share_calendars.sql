select name, version from everbell.calendars where name = any($1) order by name for share
