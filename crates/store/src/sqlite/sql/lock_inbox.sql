select id from everbell_inbox where id = ?1 and answered_at is null
