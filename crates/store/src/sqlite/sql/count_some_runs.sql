-- Not all of them: a history may be long. Ids begin with the time, so the first is the oldest.
select (select count(*) from (select 1 from everbell_runs limit ?1)) as runs,
       (select id from everbell_runs order by id limit 1) as oldest
