insert into everbell_deliveries (id, problem_id, rule, channel, change, message, created_at, available_at, status, attempt, next_attempt_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', 0, ?8)
on conflict (id) do nothing
