select r.id, r.trigger, r.nonce = 0 as by_slot, r.at, r.scheduled_at from everbell.runs r
where r.id = any($1)
