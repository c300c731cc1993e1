select count(*) from everbell_calendars
