delete from everbell.instances where heartbeat_at < $1
