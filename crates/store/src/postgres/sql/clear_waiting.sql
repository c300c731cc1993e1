update everbell.orgs set waiting = false where id = any($1)
