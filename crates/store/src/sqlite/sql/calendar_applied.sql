update everbell_calendars set applied_version = ?2 where name = ?1 and version = ?2
