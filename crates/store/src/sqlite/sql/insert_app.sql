insert into everbell_apps (source, app, releases) values (?1, ?2, '[]') on conflict (source, app) do nothing
