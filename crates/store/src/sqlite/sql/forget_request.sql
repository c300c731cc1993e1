delete from requests where key = ?1 and status is null
