select w.org_id, w.job_key as for_job, w.enabled as wanted, w.cron_expression as own_expression, w.updated_by as overridden_by,
       w.updated_at as overridden_at
from everbell.org_overrides w where w.org_id = any($1) and w.job_key = any($2)
