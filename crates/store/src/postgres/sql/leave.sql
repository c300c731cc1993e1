delete from everbell.instances where id = $1
