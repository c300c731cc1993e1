select id, kind, job_key, org_id, opened_at, closed_at, state from everbell_problems
where (?1 is null or (closed_at is null) = ?1)
  and (?2 is null or kind = ?2)
  and (?3 is null or (job_key = ?3 and kind <> 'instance_lost'))
  and (?4 is null or org_id = ?4)
  and (?5 is null or id < ?5)
order by id desc limit ?6
