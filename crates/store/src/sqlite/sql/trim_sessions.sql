-- The newest of a token stay.
delete from everbell_sessions where id in
  (select id from everbell_sessions where token_hash = ?1 order by created_at desc, id desc limit -1 offset ?2)
