select name, version from everbell_calendars where name in (select value from json_each(?1))
