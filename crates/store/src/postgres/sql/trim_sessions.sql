-- The newest of a token stay.
delete from everbell.sessions where id in
  (select id from everbell.sessions where token_hash = $1 order by created_at desc, id desc offset $2)
