-- As far as the statistics know. Dead rows that a vacuum cannot remove are what an open transaction leaves.
select pg_stat_get_dead_tuples('everbell.active_runs'::regclass) as runs, pg_stat_get_dead_tuples('everbell.timers'::regclass) as timers
