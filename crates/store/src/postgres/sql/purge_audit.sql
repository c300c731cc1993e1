-- Facts before and after may repeat the payload. Who did what, when and why stays.
update everbell.audit set before = null, after = null where object = $1 and (before is not null or after is not null)
