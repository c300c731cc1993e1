delete from everbell_org_overrides where job_key = ?1
