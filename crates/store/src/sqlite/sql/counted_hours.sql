select hour, counted_at from everbell_counted_hours order by hour
