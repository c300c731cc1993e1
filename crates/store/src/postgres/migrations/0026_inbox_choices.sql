-- Requests to enqueue have a priority, and a choice about an unfinished job of their key. Both are checked where the request is read.
alter table inbox add column priority bigint, add column if_unfinished text;

-- Roles that may write requests may write these, too: the function writes them for every caller.
do $$
declare writer record;
begin
  for writer in
    select granted.grantee, granted.is_grantable from pg_attribute a cross join lateral aclexplode(a.attacl) granted
    where a.attrelid = 'inbox'::regclass and a.attname = 'key' and granted.privilege_type = 'INSERT'
  loop
    execute format('grant insert (priority, if_unfinished) on inbox to %s%s',
                   case writer.grantee when 0 then 'public' else writer.grantee::regrole::text end,
                   case when writer.is_grantable then ' with grant option' else '' end);
  end loop;
end
$$;

drop function enqueue(text, jsonb, timestamptz, text, text);
create function enqueue(target text, payload jsonb default '{}', run_at timestamptz default null, key text default null,
                        traceparent text default null, priority bigint default null, if_unfinished text default null)
returns bigint language sql set search_path from current as $$
  insert into inbox (target, payload, run_at, key, traceparent, priority, if_unfinished)
  values ($1, $2::text, $3, $4, $5, $6, $7) returning id
$$;
