-- Timers care about what an org overrides. Nobody who is gone overrides anything.
update everbell_orgs set changed_at = ?2, waiting = true where id = ?1 and not deleted
