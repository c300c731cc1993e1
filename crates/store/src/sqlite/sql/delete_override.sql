delete from everbell_org_overrides where org_id = ?1 and job_key = ?2
