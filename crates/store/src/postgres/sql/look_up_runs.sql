select v.id, v.at, v.trigger, v.status, v.attempt from everbell.run_rows v where v.id = any($1)
