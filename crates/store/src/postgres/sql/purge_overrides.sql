delete from everbell.org_overrides where job_key = $1
