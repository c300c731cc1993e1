select id, problem_id, rule, channel, change, message, created_at, available_at, status, attempt, next_attempt_at, error, ended_at from everbell.deliveries
where ($1::uuid is null or id = $1)
  and ($2::text is null or channel = $2)
  and ($3::uuid is null or problem_id = $3)
  and ($4::text is null or status = $4)
  and ($5::uuid is null or id < $5)
order by id desc limit $6
