-- One row in a database whose rows were copied to another one, which goes on with its jobs: this one may not be started again, or
-- both would fire. Written by `everbell db copy`, deleted by `everbell db reopen`.
create table moves (
  id       integer primary key check (id = 1),
  -- 'begun' until the other database is known to have the rows
  state    text not null check (state in ('begun', 'done')),
  -- for people
  moved_to text not null,
  -- the same in one spelling, without user and password
  target   text not null,
  moved_at timestamptz not null
);

-- An instance that was connected before the copy and was not heard of meanwhile, and others that write here, must not go on
-- either. The function reads what is committed at this moment, as its owner: those who write to the inbox may not read the mark.
create function refuse_moved() returns trigger language plpgsql security definer set search_path from current as $$
declare mark moves%rowtype;
begin
  select * into mark from moves;
  if found then
    raise exception using errcode = 'EB001', message = case mark.state
      when 'done' then format('this database was copied to `%s`, where its jobs go on', mark.moved_to)
      else format('a copy of this database to `%s` did not finish; see `everbell db status`', mark.moved_to)
    end;
  end if;
  return null;
end
$$;
create trigger active_runs_moved before insert or update on active_runs for each statement execute function refuse_moved();
create trigger audit_moved before insert on audit for each statement execute function refuse_moved();
create trigger deliveries_moved before insert or update on deliveries for each statement execute function refuse_moved();
create trigger inbox_moved before insert or update on inbox for each statement execute function refuse_moved();
create trigger instances_moved before insert or update on instances for each statement execute function refuse_moved();
create trigger jobs_moved before insert or update on jobs for each statement execute function refuse_moved();
create trigger runs_moved before insert on runs for each statement execute function refuse_moved();
create trigger timers_moved before insert or update on timers for each statement execute function refuse_moved();
