delete from requests where key = ?1
