update everbell.instances set draining = $2 where id = $1
