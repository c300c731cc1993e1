-- As bytes: SQLite takes any for a text, and one that is no UTF-8 must not keep the others from being read.
select id, cast(target as blob), cast(payload as blob), cast(key as blob), cast(run_at as blob), cast(cron as blob),
       cast(timezone as blob), cast(role as blob), cast(traceparent as blob),
       priority, cast(if_unfinished as blob),
       refusal, answered_at
from everbell_inbox where answered_at is not null and refusal is not null order by answered_at desc, id desc limit ?1
