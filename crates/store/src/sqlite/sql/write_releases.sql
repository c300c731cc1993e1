insert into everbell_apps (source, app, releases) values (?1, ?2, ?3)
on conflict (source, app) do update set releases = excluded.releases
