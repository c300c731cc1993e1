delete from everbell_run_counters where hour = ?1
