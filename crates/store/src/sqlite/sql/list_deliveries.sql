select id, problem_id, rule, channel, change, message, created_at, available_at, status, attempt, next_attempt_at, error, ended_at from everbell_deliveries
where (?1 is null or id = ?1)
  and (?2 is null or channel = ?2)
  and (?3 is null or problem_id = ?3)
  and (?4 is null or status = ?4)
  and (?5 is null or id < ?5)
order by id desc limit ?6
