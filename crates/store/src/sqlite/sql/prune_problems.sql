delete from everbell_problems
where id in (
  select p.id from everbell_problems p
  where p.closed_at < ?1 and not exists (select 1 from everbell_deliveries d where d.problem_id = p.id)
  order by p.closed_at limit ?2)
