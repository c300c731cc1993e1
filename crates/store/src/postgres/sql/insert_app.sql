-- Inserted before it is locked, so that two that declare at once meet at one row.
insert into everbell.apps (source, app, releases) values ($1, $2, '[]') on conflict (source, app) do nothing
