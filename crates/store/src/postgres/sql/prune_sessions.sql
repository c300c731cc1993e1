delete from everbell.sessions where id in
  (select id from everbell.sessions where expires_at <= $1 or last_used_at <= $3 order by expires_at limit $2)
