-- Why requests for the job of this key were refused, in the audit trail. Conditions as in purge_inbox.
update everbell_audit set reason = ?2
where object in (
  select 'inbox:' || id from everbell_inbox
  where answered_at is not null and substr(coalesce(job_key, key), 1, 200) = ?1 and coalesce(job_key, key) = ?1 and refusal is not null
)
