delete from everbell.sweeps where id = $1
