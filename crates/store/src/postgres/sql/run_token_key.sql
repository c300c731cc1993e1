-- An update that changes nothing, so that the row is returned whoever wrote it.
insert into everbell.secrets as s (name, value) values ('run_tokens', $1)
on conflict (name) do update set value = s.value
returning value
