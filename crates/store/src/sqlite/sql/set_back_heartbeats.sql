update everbell_instances set heartbeat_at = ?1 where heartbeat_at > ?2
