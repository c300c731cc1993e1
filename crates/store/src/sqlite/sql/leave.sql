delete from everbell_instances where id = ?1
