delete from everbell.run_groups where job_key = $1
