delete from everbell_sweeps where id = ?1
