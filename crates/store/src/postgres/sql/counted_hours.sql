select hour, counted_at from everbell.counted_hours order by hour
