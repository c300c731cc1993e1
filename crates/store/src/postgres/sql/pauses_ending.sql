select id, paused_until from everbell.jobs where paused_until is not null order by paused_until, id limit $1
