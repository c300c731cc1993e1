-- Materialised, so that no more rows are locked than the limit says.
with due as materialized (
  select d.id from everbell.deliveries d
  where d.status = 'pending' and d.next_attempt_at <= $2 and (d.lease_until is null or d.lease_until <= $2)
    and d.channel = any($1)
    and not exists (select from everbell.deliveries e where e.problem_id = d.problem_id and e.channel = d.channel
                    and e.status = 'pending' and e.id < d.id)
  order by d.next_attempt_at, d.id limit $4
  for update skip locked
)
update everbell.deliveries d set attempt = d.attempt + 1, lease_until = $3
from due where d.id = due.id
returning d.id, d.problem_id, d.rule, d.channel, d.change, d.message, d.created_at, d.available_at, d.status, d.attempt, d.next_attempt_at, d.error, d.ended_at
