select from_at, until_at from everbell_absences
where (?1 is null or until_at >= ?1) and (?2 is null or from_at < ?2)
order by from_at desc limit ?3
