-- Whether a timer of these targets is due, and whether a run of them may start.
select exists (select 1 from everbell_timers where next_run_at <= ?1 and target in (select value from json_each(?2))),
       exists (select 1 from everbell_active_runs where status = 'pending' and not held and not paused
                                                    and target in (select value from json_each(?2)) and available_at <= ?1)
       or exists (select 1 from everbell_active_runs where held and not paused
                                                       and target in (select value from json_each(?2)) and available_at <= ?1)
