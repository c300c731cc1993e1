delete from everbell.counted_hours where hour < $1
