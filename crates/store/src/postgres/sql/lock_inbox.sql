select id from everbell.inbox where id = $1 and answered_at is null for update skip locked
