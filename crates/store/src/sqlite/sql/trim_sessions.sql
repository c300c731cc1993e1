-- The newest of a token stay.
delete from sessions where id in
  (select id from sessions where token_hash = ?1 order by created_at desc, id desc limit -1 offset ?2)
