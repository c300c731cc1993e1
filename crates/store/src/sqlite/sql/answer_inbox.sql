update everbell_inbox set answered_at = ?2, job_key = ?3, refusal = ?4 where id = ?1
