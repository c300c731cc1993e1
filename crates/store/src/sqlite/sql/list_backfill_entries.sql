select id, at, actor, action, object, reason, before, after, address, request_id, role from everbell_audit
where action = 'job.backfill' and (?2 is null or (at, id) < (?1, ?2))
order by at desc, id desc limit ?3
