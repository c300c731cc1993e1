-- Changes nothing if the hour was counted since it was looked at: another instance was faster.
insert into everbell_counted_hours as h (hour, counted_at)
select ?1, ?2
where ?3 is null or exists (select 1 from everbell_counted_hours c where c.hour = ?1)
on conflict (hour) do update set counted_at = excluded.counted_at where h.counted_at is ?3
