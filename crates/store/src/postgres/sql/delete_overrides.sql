delete from org_overrides where org_id = $1
