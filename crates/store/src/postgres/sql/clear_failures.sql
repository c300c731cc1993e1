update jobs set consecutive_failures = 0 where id = any($1) and consecutive_failures > 0
