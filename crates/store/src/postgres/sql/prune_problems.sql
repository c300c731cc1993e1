delete from everbell.problems
where id = any(array(
  select p.id from everbell.problems p
  where p.closed_at < $1 and not exists (select from everbell.deliveries d where d.problem_id = p.id)
  order by p.closed_at limit $2))
