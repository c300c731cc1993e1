update everbell_deliveries set attempt = attempt + 1, lease_until = ?3
where id in (
  select d.id from everbell_deliveries d
  where d.status = 'pending' and d.next_attempt_at <= ?2 and (d.lease_until is null or d.lease_until <= ?2)
    and d.channel in (select value from json_each(?1))
    and not exists (select 1 from everbell_deliveries e where e.problem_id = d.problem_id and e.channel = d.channel
                    and e.status = 'pending' and e.id < d.id)
  order by d.next_attempt_at, d.id limit ?4
)
returning id, problem_id, rule, channel, change, message, created_at, available_at, status, attempt, next_attempt_at, error, ended_at
