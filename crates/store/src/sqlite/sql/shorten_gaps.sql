update everbell_gaps set last_slot_at = g.last_slot_at, slots = g.slots
from (select unhex(value ->> 0) as id, value ->> 1 as last_slot_at, value ->> 2 as slots from json_each(?1)) g
where everbell_gaps.id = g.id
