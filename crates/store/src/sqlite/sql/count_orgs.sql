select (select count(*) from (select 1 as one from everbell_orgs where not deleted limit ?1) as o) as orgs,
       (select count(*) from (select 1 as one from everbell_timers where error is not null limit ?1) as t) as errored,
       (select count(*) from (select 1 as one from everbell_orgs where waiting limit ?1) as w) as waiting,
       (select count(*) from (select 1 as one from everbell_sweeps limit ?1) as s) as org_updates
