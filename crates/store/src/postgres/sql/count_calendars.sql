select count(*) from everbell.calendars
