delete from everbell_org_overrides where org_id = ?1
