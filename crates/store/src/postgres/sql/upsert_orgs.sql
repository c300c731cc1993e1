-- Whose timers wait to be looked at goes on waiting. Not written is what somebody else made meanwhile.
insert into everbell.orgs (id, name, settings, timezone, enabled, deleted, changed_at, moved_from, moved_at, revision, created_at,
                  updated_by, updated_at, waiting)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::boolean[], $7::timestamptz[],
                     $8::text[], $9::timestamptz[], $10::bigint[], $11::timestamptz[], $12::text[], $13::timestamptz[],
                     $14::boolean[])
on conflict (id) do update
set name = excluded.name, settings = excluded.settings, timezone = excluded.timezone, enabled = excluded.enabled,
    deleted = excluded.deleted, changed_at = excluded.changed_at, moved_from = excluded.moved_from,
    moved_at = excluded.moved_at, revision = excluded.revision, created_at = excluded.created_at,
    updated_by = excluded.updated_by, updated_at = excluded.updated_at, waiting = orgs.waiting or excluded.waiting
where orgs.revision = excluded.revision - 1
