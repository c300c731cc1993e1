-- The last run of the version before is the last one of this version, until it has one.
insert into everbell_timers (job_id, org_id, target, next_run_at, last_slot_at, rescheduled_from, last_local_date, last_run_at,
                    last_run_id)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, (select last_run_at from everbell_timers where job_id = ?8 and org_id = ?2),
        (select last_run_id from everbell_timers where job_id = ?8 and org_id = ?2))
