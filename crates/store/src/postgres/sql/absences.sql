select from_at, until_at from everbell.absences
where ($1::timestamptz is null or until_at >= $1) and ($2::timestamptz is null or from_at < $2)
order by from_at desc limit $3
