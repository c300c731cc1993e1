-- Two ways in one, each on its index; of the one that is not asked for, nothing is read.
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor from everbell_gaps
where ?1 is null and ?9 is null
  and (?10 is null or job_id in (select id from everbell_jobs where instr(labels, '{' || ?10) = 1 or instr(labels, ',' || ?10)))
  and (?2 is null or org_id = ?2)
  and (?3 is null or reason = ?3)
  and (?4 is null or last_slot_at >= ?4)
  and (?5 is null or first_slot_at < ?5)
  and (?7 is null or (first_slot_at, id) < (?6, ?7))
union all
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor from everbell_gaps
where job_id in (select id from everbell_jobs where job_key = ?9 union all select ?1 where ?9 is null)
  and (?1 is null or job_id = ?1)
  and (?10 is null or job_id in (select id from everbell_jobs where instr(labels, '{' || ?10) = 1 or instr(labels, ',' || ?10)))
  and (?2 is null or org_id = ?2)
  and (?3 is null or reason = ?3)
  and (?4 is null or last_slot_at >= ?4)
  and (?5 is null or first_slot_at < ?5)
  and (?7 is null or (first_slot_at, id) < (?6, ?7))
order by first_slot_at desc, id desc limit ?8
