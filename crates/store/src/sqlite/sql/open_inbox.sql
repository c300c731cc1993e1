-- As bytes: SQLite takes any for a text, and one that is no UTF-8 must not keep the others from being read.
select id, cast(target as blob), cast(payload as blob), cast(key as blob), cast(run_at as blob), cast(cron as blob),
       cast(timezone as blob), cast(role as blob), cast(traceparent as blob),
       priority, cast(if_unfinished as blob)
from everbell_inbox where answered_at is null and id not in (select value from json_each(?2)) order by id limit ?1
