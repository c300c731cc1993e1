-- A channel whose messages are tried has one that is being sent, or is tried later.
update everbell.deliveries d set status = 'dead', error = $3, ended_at = $4, lease_until = null
where d.status = 'pending' and not d.channel = any($1)
  and not exists (select from everbell.deliveries o where o.status = 'pending' and o.channel = d.channel
                  and (o.next_attempt_at >= $2 or o.lease_until > $4))
