delete from everbell.sessions where ($1::uuid is null or id = $1) and ($2::text is null or actor = $2)
