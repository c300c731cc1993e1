insert into everbell.absences (from_at, until_at) values ($1, $2) on conflict do nothing
