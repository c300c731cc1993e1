select id, paused_until from everbell_jobs where paused_until is not null order by paused_until, id limit ?1
