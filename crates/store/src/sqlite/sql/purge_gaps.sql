delete from everbell_gaps where id in (
  select id from everbell_gaps where job_id in (select unhex(value) from json_each(?1)) limit ?2
)
