insert into everbell_absences (from_at, until_at) values (?1, ?2) on conflict do nothing
