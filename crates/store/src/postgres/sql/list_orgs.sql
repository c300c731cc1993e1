select o.id, o.name, o.settings, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at, o.revision, o.created_at,
       o.updated_by, o.updated_at
from everbell.orgs o
where not o.deleted
  and ($1::text is null or position(lower($1 collate "C") in lower(o.id collate "C")) > 0 or position(lower($1 collate "C") in lower(o.name collate "C")) > 0)
  and ($2::text is null or o.timezone = $2)
  and ($3::boolean is null or o.enabled = $3)
  and ($4::boolean is null or exists (select from everbell.timers t where t.org_id = o.id and t.error is not null) = $4)
  and ($5::text is null or o.id > $5)
order by o.id limit $6
