delete from everbell.calendars where name = $1
