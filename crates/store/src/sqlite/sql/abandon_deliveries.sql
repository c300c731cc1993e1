-- A channel whose messages are tried has one that is being sent, or is tried later.
update everbell_deliveries as d set status = 'dead', error = ?3, ended_at = ?4, lease_until = null
where d.status = 'pending' and d.channel not in (select value from json_each(?1))
  and not exists (select 1 from everbell_deliveries o where o.status = 'pending' and o.channel = d.channel
                  and (o.next_attempt_at >= ?2 or o.lease_until > ?4))
