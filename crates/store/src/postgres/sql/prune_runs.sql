-- Oldest first, by the order of ids; what is active is neither ended nor skipped.
with old as materialized (
  select r.id from runs r left join outcomes o on o.run_id = r.id
  where (o.finished_at < $1 or (r.skip_reason is not null and r.created_at < $1))
    and r.id < $3
  order by r.id limit $2
), ended as (
  delete from outcomes o using old where o.run_id = old.id
)
delete from runs r using old where r.id = old.id
