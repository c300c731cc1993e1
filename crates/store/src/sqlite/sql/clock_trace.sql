-- Ids begin with a time, so the youngest entries are at the end of each key. A few of them, because the time of a run is that
-- of its slot, which an operator may have moved.
select (select trusted_at from everbell_clock),
       (select max(at) from (
          select max(created_at) as at from (select created_at from everbell_runs order by id desc limit 100)
          union all select max(created_at) from (select created_at from everbell_jobs order by id desc limit 100)
          union all select max(at) from (select at from everbell_audit order by id desc limit 100)))
