delete from everbell_absences where from_at in (select from_at from everbell_absences where until_at < ?1 order by until_at limit ?2)
