select w.job_key as for_job, w.enabled as wanted, w.cron_expression as own_expression, w.updated_by as overridden_by,
       w.updated_at as overridden_at
from everbell.org_overrides w where w.org_id = $1 order by w.job_key collate "C"
