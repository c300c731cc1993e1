delete from everbell_calendars where name = ?1
