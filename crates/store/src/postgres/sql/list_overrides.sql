select w.job_key as wish_job_key, w.enabled as wish_enabled, w.cron_expression as wish_expression, w.updated_by as wish_by,
       w.updated_at as wish_at
from org_overrides w where w.org_id = $1 order by w.job_key collate "C"
