-- The conditions of a list of jobs, for one of them.
(?1 is null or {row}.status in (select value from json_each(?1)))
and (?1 is null or instr(?1, '"latest"') = 0 or not exists (
  select 1 from everbell_jobs l where l.job_key = {row}.job_key and l.version > {row}.version))
and (?2 is null or {row}.target in (select value from json_each(?2)))
and (?3 is null or {row}.job_key = ?3)
and (?4 is null or instr(lower({row}.job_key), ?4) or instr(lower({row}.target), ?4) or instr(lower({row}.description), ?4))
and (?5 is null or {row}.source = ?5)
and (?7 is null or ({row}.error is not null) = ?7)
and (?8 is null or ({row}.consecutive_failures > 0) = ?8)
and (?9 is null or ({row}.schedule_type = 'one_time') = ?9)
and (?10 is null or exists (select 1 from everbell_timers n where n.job_id = {row}.id and n.next_run_at is not null) = ?10)
and (?11 is null or instr({row}.labels, '{' || ?11) = 1 or instr({row}.labels, ',' || ?11))
