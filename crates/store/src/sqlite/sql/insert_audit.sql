-- The same entry twice is one entry: a caller whose answer was lost may ask again.
insert into everbell_audit (id, at, actor, action, object, reason, before, after, address, request_id, role)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing
