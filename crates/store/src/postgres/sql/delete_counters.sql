delete from everbell.run_counters where hour = $1
