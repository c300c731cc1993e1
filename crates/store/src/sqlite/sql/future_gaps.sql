select id, job_id, org_id, first_slot_at, last_slot_at, slots, reason, actor from everbell_gaps
where job_id in (select unhex(value) from json_each(?1)) and created_at > ?2 and last_slot_at > ?3
