-- Not all of them: a history may be long. Ids begin with the time, so the first is the oldest.
select (select count(*) from (select 1 from everbell.runs limit $1) as few) as runs,
       (select id from everbell.runs order by id limit 1) as oldest
