select reason, count(*) as gaps, sum(slots)::bigint as slots from everbell.gaps
where first_slot_at >= $1 and first_slot_at < $2 group by reason
