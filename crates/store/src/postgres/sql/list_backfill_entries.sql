select id, at, actor, action, object, reason, before, after, address, request_id, role from everbell.audit
where action = 'job.backfill' and ($2::uuid is null or (at, id) < ($1, $2))
order by at desc, id desc limit $3
