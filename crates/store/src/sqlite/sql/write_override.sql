insert into everbell_org_overrides (org_id, job_key, enabled, cron_expression, updated_by, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (org_id, job_key) do update
set enabled = excluded.enabled, cron_expression = excluded.cron_expression, updated_by = excluded.updated_by,
    updated_at = excluded.updated_at
