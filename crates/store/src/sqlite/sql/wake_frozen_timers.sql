-- One-time jobs wait for the end of a freeze: their fire was moved there.
update everbell_timers set next_run_at = ?2
where next_run_at = ?1 and rescheduled_from is not null
  and exists (select 1 from everbell_jobs j where j.id = everbell_timers.job_id and j.run_at is not null)
