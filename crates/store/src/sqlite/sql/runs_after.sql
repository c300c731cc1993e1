-- Ids begin with the time at which the run before ended, so this reads the runs of one millisecond.
select {columns of run_rows as v} from everbell_run_rows v where v.id in (
  select r.id from everbell_runs r where r.id >= ?1 and r.id <= ?2 and (r.trigger = ?3 or substr(r.trigger, 1, length(?3) + 1) = ?3 || '+') order by r.id limit ?4
) order by v.id
