select r.id, r.trigger, r.nonce = 0 as by_slot, r.at, r.scheduled_at from everbell_runs r
where r.id in (select unhex(value) from json_each(?1))
