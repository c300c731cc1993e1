-- The schema of `schema_migrations`, as a statement without a schema finds it, if tables of everbell are next to it.
select n.nspname::text
from pg_catalog.pg_class m join pg_catalog.pg_namespace n on n.oid = m.relnamespace
where m.oid = to_regclass('schema_migrations') and m.relkind = 'r' and (
  select count(*)
  from (values ('schema_migrations', 'version', 'integer'), ('schema_migrations', 'applied_at', 'timestamp with time zone'),
               ('jobs', 'supersedes_job_id', 'uuid'), ('jobs', 'content_hash', 'bytea'), ('jobs', 'dst_fold', 'text'),
               ('timers', 'last_slot_at', 'timestamp with time zone'), ('timers', 'rescheduled_from', 'timestamp with time zone'),
               ('active_runs', 'max_concurrent', 'integer'), ('active_runs', 'lease_until', 'timestamp with time zone'),
               ('outcomes', 'failure_details', 'text'), ('outcomes', 'runner_id', 'uuid'))
    as ours (relation, name, type)
  join pg_catalog.pg_class c on c.relname = ours.relation and c.relnamespace = n.oid and c.relkind = 'r'
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = ours.name
    and format_type(a.atttypid, a.atttypmod) = ours.type
) = 11
