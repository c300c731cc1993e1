delete from everbell.org_overrides where org_id = $1
