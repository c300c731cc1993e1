select exists (select 1 from orgs where waiting) or exists (select 1 from sweeps) or exists (select 1 from orgs where deleted)
       as needed
