select exists (select from orgs where waiting) or exists (select from sweeps) or exists (select from orgs where deleted) as needed
