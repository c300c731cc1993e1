-- Each slot of a freeze is planned when it is due, and the gap of the freeze grows.
update everbell_gaps set last_slot_at = g.last_slot_at, slots = everbell_gaps.slots + g.slots, created_at = ?2
from (select unhex(value ->> 0) as id, value ->> 1 as ended_at, value ->> 2 as last_slot_at, value ->> 3 as slots from json_each(?1)) g
where everbell_gaps.id = g.id and everbell_gaps.last_slot_at = g.ended_at
returning id
