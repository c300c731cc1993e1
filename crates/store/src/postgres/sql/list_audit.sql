select id, at, actor, action, object, reason, before, after, address, request_id, role from everbell.audit
where ($1::text is null or object = $1) and ($2::uuid is null or id < $2)
order by id desc limit $3
