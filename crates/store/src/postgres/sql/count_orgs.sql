select (select count(*) from (select 1 as one from everbell.orgs where not deleted limit $1) as o) as orgs,
       (select count(*) from (select 1 as one from everbell.timers where error is not null limit $1) as t) as errored,
       (select count(*) from (select 1 as one from everbell.orgs where waiting limit $1) as w) as waiting,
       (select count(*) from (select 1 as one from everbell.sweeps limit $1) as s) as org_updates
