select (select min(finished_at) from everbell.outcomes) as ended,
       (select id from everbell.runs where skip_reason is not null order by id limit 1) as skipped
