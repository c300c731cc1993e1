-- The first condition is for the index. One that has no answer yet is about another job of this key.
update everbell_inbox set payload = null, refusal = case when refusal is not null then ?2 end
where answered_at is not null and substr(coalesce(job_key, key), 1, 200) = ?1 and coalesce(job_key, key) = ?1
  and (payload is not null or refusal is not null)
