-- A one-time job waits for the end of a freeze. A timer that is due by chance at that time is only looked at once more.
update everbell_timers set next_run_at = ?2 where next_run_at = ?1
