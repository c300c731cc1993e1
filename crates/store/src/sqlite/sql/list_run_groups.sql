select job_key, name, opened_at, deadline, closed_at, started, runs from everbell_run_groups
where job_key = ?1 and (?2 is null or opened_at <= ?2) order by opened_at desc, name limit ?3
