delete from everbell.inbox
where id = any(array(select id from everbell.inbox where answered_at < $1 order by answered_at limit $2))
