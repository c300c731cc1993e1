-- Where a thousand others come first, the time of the last of them: who looks again then is not too late, and nobody reads on
-- through a million timers that somebody else serves.
select next_run_at from (select coalesce(
  (select next_run_at
   from (select next_run_at, target from everbell.timers where next_run_at > $1 order by next_run_at limit 1000) soon
   where target = any($2) order by next_run_at limit 1),
  (select next_run_at from everbell.timers where next_run_at > $1 order by next_run_at offset 999 limit 1)
) as next_run_at) n
where next_run_at is not null
