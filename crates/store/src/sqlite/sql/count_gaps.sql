select reason, count(*) as gaps, sum(slots) as slots from everbell_gaps
where first_slot_at >= ?1 and first_slot_at < ?2 group by reason
