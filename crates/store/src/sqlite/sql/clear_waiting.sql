update everbell_orgs set waiting = false where id in (select value from json_each(?1))
