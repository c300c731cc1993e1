-- $1 is a little after now. A mark beyond it is false if what moved it there was written beyond it as well. A one-time job
-- that ran has had its slot, also if a resume has moved its mark beyond that.
with future as materialized (
  select t.job_id, t.org_id, t.next_run_at, t.last_slot_at, t.rescheduled_from, t.last_local_date
  from everbell.timers t join everbell.jobs j on j.id = t.job_id
  where t.last_slot_at > $1 and j.status <> 'retired'
    and not (j.schedule_type = 'one_time'
      and exists (select 1 from everbell.runs r where r.job_id = j.id and r.org_id = t.org_id and r.nonce = 0))
    and ((j.created_at > $1 and t.last_slot_at >= j.created_at)
      or (j.updated_at > $1 and t.last_slot_at >= j.updated_at)
      or exists (select 1 from everbell.jobs v join everbell.runs r on r.job_id = v.id
                 where v.job_key = j.job_key and r.at = t.last_slot_at and r.org_id = t.org_id and r.created_at > $1)
      or exists (select 1 from everbell.jobs v join everbell.gaps g on g.job_id = v.id
                 where v.job_key = j.job_key and g.org_id = t.org_id and g.last_slot_at = t.last_slot_at
                   and g.created_at > $1))
  order by t.job_id, t.org_id
  limit $2
  for update of t
)
select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date from future
