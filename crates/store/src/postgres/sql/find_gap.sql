-- The narrowest one: a skipped DST change may lie inside a longer gap.
select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor from everbell.gaps
where job_id = $1 and org_id = $2 and first_slot_at <= $3 and last_slot_at >= $3
order by last_slot_at - first_slot_at, id limit 1
