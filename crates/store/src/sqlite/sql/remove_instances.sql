delete from everbell_instances where heartbeat_at < ?1
