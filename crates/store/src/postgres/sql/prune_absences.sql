delete from everbell.absences where from_at in (select from_at from everbell.absences where until_at < $1 order by until_at limit $2)
