-- Those of these names that are in a schema, tables first.
select c.relname::text, c.relkind = 'v' as is_view
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = any($2) and c.relkind in ('r', 'v')
order by 2, 1
