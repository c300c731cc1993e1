delete from everbell_targets where label = ?1
