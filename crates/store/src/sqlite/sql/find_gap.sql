-- The one that begins last: a skipped DST change may lie inside a longer gap.
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor from everbell_gaps
where job_id = ?1 and org_id = ?2 and first_slot_at <= ?3 and last_slot_at >= ?3
order by first_slot_at desc, id desc limit 1
