-- Each slot of a freeze is planned when it is due, and the gap of the freeze grows.
update everbell.gaps set last_slot_at = g.last_slot_at, slots = gaps.slots + g.slots, created_at = $5
from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::bigint[]) as g (id, ended_at, last_slot_at, slots)
where gaps.id = g.id and gaps.last_slot_at = g.ended_at
returning gaps.id
