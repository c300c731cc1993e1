-- Whose timers wait to be looked at goes on waiting. Not written is what somebody else made meanwhile.
insert into everbell_orgs (id, name, settings, timezone, enabled, deleted, changed_at, moved_from, moved_at, revision, created_at,
                  updated_by, updated_at, waiting)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
       value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13
from jsonb_each(?1)
where true
on conflict (id) do update
set name = excluded.name, settings = excluded.settings, timezone = excluded.timezone, enabled = excluded.enabled,
    deleted = excluded.deleted, changed_at = excluded.changed_at, moved_from = excluded.moved_from,
    moved_at = excluded.moved_at, revision = excluded.revision, created_at = excluded.created_at,
    updated_by = excluded.updated_by, updated_at = excluded.updated_at, waiting = max(everbell_orgs.waiting, excluded.waiting)
where everbell_orgs.revision = excluded.revision - 1
