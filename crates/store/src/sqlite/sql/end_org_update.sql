delete from sweeps where id = ?1
