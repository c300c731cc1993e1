update everbell_instances set draining = ?2 where id = ?1
