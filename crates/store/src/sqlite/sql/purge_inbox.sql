-- The first condition is for the index. One that has no answer yet is about another job of this key.
update everbell_inbox set payload = null
where answered_at is not null and payload is not null and substr(coalesce(job_key, key), 1, 200) = ?1
  and coalesce(job_key, key) = ?1
