-- Changes nothing if the hour was counted since it was looked at: another instance was faster.
insert into everbell.counted_hours as h (hour, counted_at)
select $1::timestamptz, $2::timestamptz
where $3::timestamptz is null or exists (select 1 from everbell.counted_hours c where c.hour = $1)
on conflict (hour) do update set counted_at = excluded.counted_at where h.counted_at is not distinct from $3
