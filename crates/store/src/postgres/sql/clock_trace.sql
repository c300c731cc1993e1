-- Ids begin with a time, so the youngest entries are at the end of each key. A few of them, because the time of a run is that
-- of its slot, which an operator may have moved.
select (select trusted_at from everbell.clock),
       greatest((select max(created_at) from (select created_at from everbell.runs order by id desc limit 100) r),
                (select max(created_at) from (select created_at from everbell.jobs order by id desc limit 100) j),
                (select max(at) from (select at from everbell.audit order by id desc limit 100) a))
