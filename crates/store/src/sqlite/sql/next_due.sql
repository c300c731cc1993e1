select next_run_at from timers indexed by timers_due
where next_run_at > ?1 and target in (select value from json_each(?2))
order by next_run_at limit 1
