select (select min(finished_at) from everbell_outcomes) as ended,
       (select id from everbell_runs where skip_reason is not null order by id limit 1) as skipped
