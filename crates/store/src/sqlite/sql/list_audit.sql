-- Two ways in one, each on its index; of the one that is not asked for, nothing is read.
select id, at, actor, action, object, reason, before, after, address, request_id, role from everbell_audit
where ?1 is null and (?3 is null or (at, id) < (?2, ?3))
union all
select id, at, actor, action, object, reason, before, after, address, request_id, role from everbell_audit
where object = ?1 and (?3 is null or (at, id) < (?2, ?3))
order by at desc, id desc limit ?4
