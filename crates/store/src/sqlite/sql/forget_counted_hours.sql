delete from everbell_counted_hours where hour < ?1
