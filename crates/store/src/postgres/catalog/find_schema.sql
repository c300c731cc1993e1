-- Whether the schema exists, the columns of its table of migrations, and its relations that have a name of ours.
select to_regnamespace(quote_ident($1)) is not null as schema_exists,
       array(select a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
             from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
             where n.nspname = $1 and c.relname = 'migrations' order by a.attnum) as columns,
       array(select c.relname::text
             from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where n.nspname = $1 and c.relname = any($2) order by 1) as relations
