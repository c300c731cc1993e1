update everbell.gaps set last_slot_at = g.last_slot_at, slots = g.slots
from unnest($1::uuid[], $2::timestamptz[], $3::bigint[]) as g (id, last_slot_at, slots)
where gaps.id = g.id
