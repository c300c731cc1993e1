update everbell.sweeps set reached = $2, seen = $3, stepped_at = $4 where id = $1
