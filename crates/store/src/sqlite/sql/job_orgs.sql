select o.id, o.name, o.settings, o.timezone, o.enabled, o.deleted, o.changed_at, o.moved_from, o.moved_at, o.revision, o.created_at,
       o.updated_by, o.updated_at,
       w.job_key as for_job, w.enabled as wanted, w.cron_expression as own_expression, w.updated_by as overridden_by,
       w.updated_at as overridden_at,
       t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date, t.error as timer_error
from everbell_orgs o
left join everbell_org_overrides w on w.org_id = o.id and w.job_key = ?2
left join everbell_timers t on t.job_id = ?1 and t.org_id = o.id
where not o.deleted
  and (?3 is null or instr(lower(o.id), lower(?3)) > 0 or instr(lower(o.name), lower(?3)) > 0)
  and (?4 is null or (t.error is not null) = ?4)
  and (?5 is null or (t.next_run_at is not null) = ?5)
  and (?6 is null or o.id > ?6)
order by o.id limit ?7
