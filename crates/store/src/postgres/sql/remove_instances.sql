delete from instances where heartbeat_at < $1
